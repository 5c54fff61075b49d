// Fused kernels for training on the CPU, called from ops.py through ctypes.
//
// PyTorch multiplies bf16 matrices fast on machines with AVX512-BF16, but its
// element-wise passes cost as much time again.  These do each such pass once,
// reading and writing bf16 and computing in f32.  Rows are split statically
// between threads, so results depend on the thread count only.
//
// Shapes: M rows (tokens), D columns.  bf16 values travel as uint16_t.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <omp.h>

namespace {

using bf16 = std::uint16_t;

inline float widen(bf16 v) {
  std::uint32_t bits = static_cast<std::uint32_t>(v) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

// Rounds to nearest, ties to even.
inline bf16 narrow(float f) {
  std::uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return static_cast<bf16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// A hash of (seed, index) in 32 bits: the dropout mask needs no memory, the
// backward pass computes it again.
inline std::uint32_t mix(std::uint32_t seed, std::uint32_t index) {
  std::uint32_t h = index * 0x9e3779b9u + seed;
  h ^= h >> 16;
  h *= 0x85ebca6bu;
  h ^= h >> 13;
  h *= 0xc2b2ae35u;
  return h ^ (h >> 16);
}

// Twice the argument of GELU's tanh.  The bounds keep exp(-u) and its inverse finite: -ffast-math
// divides by way of an approximate reciprocal, which turns 1 / inf into NaN.
inline float gelu_argument(float v) {
  return std::min(std::max(1.5957691216f * (v + 0.044715f * v * v * v), -80.0f), 80.0f);
}

// Adds per-thread partial sums [threads, D] into out [D].
void reduce(const std::vector<float>& partial, float* out, long D) {
  const long threads = static_cast<long>(partial.size()) / D;
  for (long d = 0; d < D; ++d) {
    float sum = 0;
    for (long t = 0; t < threads; ++t) sum += partial[t * D + d];
    out[d] = sum;
  }
}

}  // namespace

extern "C" {

// y = (x - mean) / sqrt(var + eps) * gain + bias; x [M, D] f32, y bf16.
void layer_norm_forward(const float* x, const float* gain, const float* bias, bf16* y, float* mean,
                        float* rstd, long M, long D) {
#pragma omp parallel for schedule(static)
  for (long m = 0; m < M; ++m) {
    const float* row = x + m * D;
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (long d = 0; d < D; ++d) sum += row[d];
    const float mu = sum / D;
#pragma omp simd reduction(+ : squares)
    for (long d = 0; d < D; ++d) squares += (row[d] - mu) * (row[d] - mu);
    const float r = 1.0f / std::sqrt(squares / D + 1e-5f);
    mean[m] = mu;
    rstd[m] = r;
    bf16* out = y + m * D;
#pragma omp simd
    for (long d = 0; d < D; ++d) out[d] = narrow((row[d] - mu) * r * gain[d] + bias[d]);
  }
}

void layer_norm_backward(const bf16* dy, const float* x, const float* gain, const float* mean,
                         const float* rstd, float* dx, float* dgain, float* dbias, long M, long D) {
  const int threads = omp_get_max_threads();
  std::vector<float> gains(threads * D, 0.0f), biases(threads * D, 0.0f);
#pragma omp parallel
  {
    float* dg = gains.data() + omp_get_thread_num() * D;
    float* db = biases.data() + omp_get_thread_num() * D;
#pragma omp for schedule(static)
    for (long m = 0; m < M; ++m) {
      const bf16* g = dy + m * D;
      const float* row = x + m * D;
      const float mu = mean[m], r = rstd[m];
      float a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
      for (long d = 0; d < D; ++d) {
        const float go = widen(g[d]), hat = (row[d] - mu) * r;
        dg[d] += go * hat;
        db[d] += go;
        a += go * gain[d];
        b += go * gain[d] * hat;
      }
      a /= D;
      b /= D;
      float* out = dx + m * D;
#pragma omp simd
      for (long d = 0; d < D; ++d)
        out[d] = (widen(g[d]) * gain[d] - a - (row[d] - mu) * r * b) * r;
    }
  }
  reduce(gains, dgain, D);
  reduce(biases, dbias, D);
}

// GELU in its tanh form over n values.
void gelu_forward(const bf16* x, bf16* y, long n) {
#pragma omp parallel for simd schedule(static)
  for (long i = 0; i < n; ++i) {
    const float v = widen(x[i]);
    y[i] = narrow(v / (1.0f + std::exp(-gelu_argument(v))));
  }
}

void gelu_backward(const bf16* x, const bf16* dy, bf16* dx, long n) {
#pragma omp parallel for simd schedule(static)
  for (long i = 0; i < n; ++i) {
    const float v = widen(x[i]);
    const float s = 1.0f / (1.0f + std::exp(-gelu_argument(v)));
    const float slope = 1.5957691216f * (1.0f + 3.0f * 0.044715f * v * v);
    dx[i] = narrow(widen(dy[i]) * (s + v * s * (1.0f - s) * slope));
  }
}

// out = x + dropout(y): keeps a value if its hash is at least `threshold`.
void drop_add_forward(const float* x, const bf16* y, float* out, long n, std::uint32_t seed,
                      std::uint32_t threshold, float scale) {
#pragma omp parallel for simd schedule(static)
  for (long i = 0; i < n; ++i) {
    const float kept = mix(seed, static_cast<std::uint32_t>(i)) >= threshold ? scale : 0.0f;
    out[i] = x[i] + widen(y[i]) * kept;
  }
}

void drop_add_backward(const float* dout, bf16* dy, long n, std::uint32_t seed,
                       std::uint32_t threshold, float scale) {
#pragma omp parallel for simd schedule(static)
  for (long i = 0; i < n; ++i) {
    const float kept = mix(seed, static_cast<std::uint32_t>(i)) >= threshold ? scale : 0.0f;
    dy[i] = narrow(dout[i] * kept);
  }
}

// out [D] = the sum over rows of dy [M, D].
void column_sum(const bf16* dy, float* out, long M, long D) {
  std::vector<float> sums(omp_get_max_threads() * D, 0.0f);
#pragma omp parallel
  {
    float* sum = sums.data() + omp_get_thread_num() * D;
#pragma omp for schedule(static)
    for (long m = 0; m < M; ++m) {
      const bf16* row = dy + m * D;
#pragma omp simd
      for (long d = 0; d < D; ++d) sum[d] += widen(row[d]);
    }
  }
  reduce(sums, out, D);
}

// Causal softmax of scale * scores, in place: scores [B, T, T], row t sees
// columns 0..t, the others become 0.
void causal_softmax_forward(bf16* scores, long B, long T, float scale) {
#pragma omp parallel for schedule(static)
  for (long r = 0; r < B * T; ++r) {
    const long t = r % T;
    bf16* row = scores + r * T;
    float top = -1e30f, sum = 0;
    float buffer[1024];
#pragma omp simd reduction(max : top)
    for (long i = 0; i <= t; ++i) {
      buffer[i] = widen(row[i]) * scale;
      top = std::max(top, buffer[i]);
    }
#pragma omp simd reduction(+ : sum)
    for (long i = 0; i <= t; ++i) {
      buffer[i] = std::exp(buffer[i] - top);
      sum += buffer[i];
    }
    const float inverse = 1.0f / sum;
#pragma omp simd
    for (long i = 0; i <= t; ++i) row[i] = narrow(buffer[i] * inverse);
    std::memset(row + t + 1, 0, (T - t - 1) * sizeof(bf16));
  }
}

// dscores, written over dp: p * (dp - sum(dp * p)) * scale.
void causal_softmax_backward(const bf16* p, bf16* dp, long B, long T, float scale) {
#pragma omp parallel for schedule(static)
  for (long r = 0; r < B * T; ++r) {
    const long t = r % T;
    const bf16* row = p + r * T;
    bf16* grad = dp + r * T;
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (long i = 0; i <= t; ++i) dot += widen(row[i]) * widen(grad[i]);
#pragma omp simd
    for (long i = 0; i <= t; ++i)
      grad[i] = narrow(widen(row[i]) * (widen(grad[i]) - dot) * scale);
    std::memset(grad + t + 1, 0, (T - t - 1) * sizeof(bf16));
  }
}

// [B, T, 3, H, d] <-> three [B, H, T, d], for the heads of attention.
void split_heads(const bf16* qkv, bf16* q, bf16* k, bf16* v, long B, long T, long H, long d) {
  bf16* out[3] = {q, k, v};
#pragma omp parallel for schedule(static)
  for (long bt = 0; bt < B * T; ++bt)
    for (long s = 0; s < 3; ++s)
      for (long h = 0; h < H; ++h)
        std::memcpy(out[s] + (((bt / T) * H + h) * T + bt % T) * d,
                    qkv + ((bt * 3 + s) * H + h) * d, d * sizeof(bf16));
}

void join_heads(const bf16* q, const bf16* k, const bf16* v, bf16* qkv, long B, long T, long H,
                long d) {
  const bf16* in[3] = {q, k, v};
#pragma omp parallel for schedule(static)
  for (long bt = 0; bt < B * T; ++bt)
    for (long s = 0; s < 3; ++s)
      for (long h = 0; h < H; ++h)
        std::memcpy(qkv + ((bt * 3 + s) * H + h) * d,
                    in[s] + (((bt / T) * H + h) * T + bt % T) * d, d * sizeof(bf16));
}

// Cross-entropy of logits [M, V] against targets [M]: losses [M] in nats, and
// the logits replaced by their gradient times `scale`.
void cross_entropy(bf16* logits, const std::int64_t* targets, float* losses, long M, long V,
                   float scale) {
#pragma omp parallel
  {
    std::vector<float> buffer(V);
    float* e = buffer.data();
#pragma omp for schedule(static)
    for (long m = 0; m < M; ++m) {
      bf16* row = logits + m * V;
      float top = -1e30f, sum = 0;
#pragma omp simd reduction(max : top)
      for (long i = 0; i < V; ++i) top = std::max(top, widen(row[i]));
#pragma omp simd reduction(+ : sum)
      for (long i = 0; i < V; ++i) {
        e[i] = std::exp(widen(row[i]) - top);
        sum += e[i];
      }
      const long target = targets[m];
      losses[m] = std::log(sum) + top - widen(row[target]);
      const float factor = scale / sum;
#pragma omp simd
      for (long i = 0; i < V; ++i) row[i] = narrow(e[i] * factor);
      row[target] = narrow(e[target] * factor - scale);
    }
  }
}

}  // extern "C"
