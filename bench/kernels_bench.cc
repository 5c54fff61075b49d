// The kernels alone, natively, at the shapes of GPT-2 124M. Build with the release
// preset, then: build/release/bench/kvasm_kernels_bench

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/kv_layout.h"
#include "kernels/layer_norm.h"
#include "kernels/matmul.h"
#include "kernels/matrix_writer.h"
#include "kernels/packed_matrix.h"
#include "kernels/softmax.h"

namespace kvasm {
namespace {

constexpr size_t kEmbd = 768;
constexpr size_t kInner = 3072;
constexpr size_t kQkv = 2304;
constexpr size_t kVocab = 50257;
constexpr size_t kHeads = 12;
constexpr size_t kHeadDim = 64;
constexpr size_t kKeys = 512;

AlignedBuffer<float> RandomBuffer(size_t n) {
  static std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  AlignedBuffer<float> buffer =
      std::move(*AlignedBuffer<float>::Create(n, "a benchmark"));
  for (size_t i = 0; i < n; ++i) buffer[i] = normal(random);
  return buffer;
}

// Layers of a model follow each other, so that no matrix is in the cache when its turn
// comes: as many of them as it takes to push each other out of 64 MB.
std::vector<PackedMatrix> Matrices(size_t n_in, size_t n_out, WeightDtype dtype) {
  constexpr size_t kFootprint = 64 << 20;
  const AlignedBuffer<float> row = RandomBuffer(n_out);
  MatrixWriter writer = std::move(*MatrixWriter::Create(n_out, dtype, "a benchmark"));
  std::vector<PackedMatrix> matrices;
  for (size_t held = 0; held < kFootprint; held += matrices.back().bytes()) {
    matrices.push_back(
        std::move(*PackedMatrix::Create(n_in, n_out, "a benchmark", dtype)));
    for (size_t i = 0; i < n_in; ++i) {
      writer.Write(MatrixOrder::kConv1d, i * n_out, row.data(), n_out,
                   &matrices.back());
    }
  }
  return matrices;
}

void BM_MatMul(benchmark::State& state) {
  const size_t rows = static_cast<size_t>(state.range(0));
  const size_t n_in = static_cast<size_t>(state.range(1));
  const size_t n_out = static_cast<size_t>(state.range(2));
  const auto dtype = static_cast<WeightDtype>(state.range(3));
  const std::vector<PackedMatrix> matrices = Matrices(n_in, n_out, dtype);
  const AlignedBuffer<float> x = RandomBuffer(rows * n_in);
  QuantizedRows quantized = std::move(*QuantizedRows::Create(rows, n_in));
  const AlignedBuffer<float> bias = RandomBuffer(PaddedSize(n_out));
  AlignedBuffer<float> out = RandomBuffer(rows * PaddedSize(n_out));
  size_t turn = 0;
  for (auto _ : state) {
    for (size_t r = 0; dtype != WeightDtype::kF32 && r < rows; ++r) {
      quantized.Quantize(x.data() + r * n_in, n_in, dtype, r);
    }
    MatMul({x.data(), rows, n_in, &quantized}, matrices[turn], bias.data(), out.data(),
           PaddedSize(n_out));
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
    turn = (turn + 1) % matrices.size();
  }
  using benchmark::Counter;
  const double elements = static_cast<double>(n_in * n_out);
  // Each weight is read once from memory, and used once per row.
  state.counters["weights"] =
      Counter(static_cast<double>(matrices[0].bytes()),
              Counter::kIsIterationInvariantRate, Counter::OneK::kIs1000);
  state.counters["FLOPS"] =
      Counter(2 * elements * static_cast<double>(rows),
              Counter::kIsIterationInvariantRate, Counter::OneK::kIs1000);
}

void MatMulShapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"rows", "in", "out", "dtype"})->Unit(benchmark::kMicrosecond);
  const std::pair<size_t, size_t> shapes[] = {
      {kEmbd, kQkv}, {kEmbd, kInner}, {kInner, kEmbd}, {kEmbd, kVocab}};
  for (const auto& [n_in, n_out] : shapes) {
    for (const int64_t rows : {1, 3, 4, 8, 64}) {
      for (const WeightDtype dtype :
           {WeightDtype::kF32, WeightDtype::kQ8, WeightDtype::kQ4}) {
        bench->Args({rows, static_cast<int64_t>(n_in), static_cast<int64_t>(n_out),
                     static_cast<int64_t>(dtype)});
      }
    }
  }
}
BENCHMARK(BM_MatMul)->Apply(MatMulShapes);

// One layer's attention for one token: all heads over their keys and values.
void BM_Attention(benchmark::State& state) {
  const auto dtype = static_cast<KvDtype>(state.range(0));
  const size_t head_bytes = KvHeadBytes(dtype, kHeadDim);
  const size_t block_bytes = kHeads * 2 * head_bytes;
  constexpr size_t kBlocks = kKeys / kBlockTokens;
  AlignedBuffer<uint8_t> memory =
      std::move(*AlignedBuffer<uint8_t>::Create(kBlocks * block_bytes, "a benchmark"));
  const AlignedBuffer<float> q = RandomBuffer(kHeads * kHeadDim);
  std::vector<const uint8_t*> blocks;
  for (size_t b = 0; b < kBlocks; ++b) {
    uint8_t* block = memory.data() + b * block_bytes;
    blocks.push_back(block);
    for (size_t h = 0; h < kHeads; ++h) {
      const AlignedBuffer<float> vectors = RandomBuffer(2 * kBlockTokens * kHeadDim);
      uint8_t* keys = block + 2 * h * head_bytes;
      for (size_t slot = 0; slot < kBlockTokens; ++slot) {
        const float* key = vectors.data() + 2 * slot * kHeadDim;
        StoreKey(dtype, key, kHeadDim, slot, keys);
        StoreValue(dtype, key + kHeadDim, kHeadDim, slot, keys + head_bytes);
      }
    }
  }
  AlignedBuffer<float> scores = RandomBuffer(kKeys);
  AlignedBuffer<float> out = RandomBuffer(kHeads * kHeadDim);
  const KeyRange range = {0, kKeys};
  const float scale = 1.0f / std::sqrt(static_cast<float>(kHeadDim));
  for (auto _ : state) {
    for (size_t h = 0; h < kHeads; ++h) {
      const KvHead keys = {dtype, kHeadDim, blocks.data(), 2 * h * head_bytes};
      const KvHead values = {dtype, kHeadDim, blocks.data(), (2 * h + 1) * head_bytes};
      AttentionScores(q.data() + h * kHeadDim, keys, range, scale, scores.data());
      Softmax(range, scores.data());
      AttentionValues(scores.data(), values, range, out.data() + h * kHeadDim);
    }
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  constexpr const char* kNames[] = {"f32", "f16", "q8"};
  state.SetLabel(kNames[state.range(0)]);
  state.SetBytesProcessed(static_cast<int64_t>(memory.bytes()) * state.iterations());
}
BENCHMARK(BM_Attention)
    ->ArgName("dtype")
    ->DenseRange(0, 2)
    ->Unit(benchmark::kMicrosecond);

void BM_LayerNorm(benchmark::State& state) {
  const size_t rows = static_cast<size_t>(state.range(0));
  const AlignedBuffer<float> x = RandomBuffer(rows * kEmbd);
  const AlignedBuffer<float> gain = RandomBuffer(kEmbd), bias = RandomBuffer(kEmbd);
  AlignedBuffer<float> out = RandomBuffer(rows * kEmbd);
  for (auto _ : state) {
    LayerNorm(x.data(), rows, kEmbd, kEmbd, gain.data(), bias.data(), 1e-5f,
              out.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<int64_t>(rows * kEmbd) * state.iterations());
}
BENCHMARK(BM_LayerNorm)->ArgName("rows")->Arg(1)->Arg(64);

void BM_GeluNew(benchmark::State& state) {
  const size_t n = static_cast<size_t>(state.range(0)) * kInner;
  const AlignedBuffer<float> x = RandomBuffer(n);
  AlignedBuffer<float> out = RandomBuffer(n);
  for (auto _ : state) {
    // It works in place: without fresh values it would soon see nothing but zeros. The
    // copy is a small part of the time.
    std::copy_n(x.data(), n, out.data());
    GeluNew(out.data(), n);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<int64_t>(n) * state.iterations());
}
BENCHMARK(BM_GeluNew)->ArgName("rows")->Arg(1)->Arg(64);

}  // namespace
}  // namespace kvasm
