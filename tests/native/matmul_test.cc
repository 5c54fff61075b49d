#include "kernels/matmul.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/native_threads.h"
#include "kernels/matrix_writer.h"
#include "random_model.h"

namespace kvasm {
namespace {

constexpr WeightDtype kDtypes[] = {WeightDtype::kF32, WeightDtype::kQ8,
                                   WeightDtype::kQ4};

PackedMatrix Pack(const std::vector<float>& conv1d, size_t n_in, size_t n_out,
                  WeightDtype dtype) {
  PackedMatrix w = std::move(*PackedMatrix::Create(n_in, n_out, "a test", dtype));
  MatrixWriter writer = std::move(*MatrixWriter::Create(n_out, dtype, "a test"));
  writer.Write(MatrixOrder::kConv1d, 0, conv1d.data(), conv1d.size(), &w);
  return w;
}

PackedMatrix RandomMatrix(TestRandom& random, size_t n_in, size_t n_out,
                          WeightDtype dtype) {
  return Pack(RandomFloats(random, n_in * n_out), n_in, n_out, dtype);
}

// Rows of activations, as floats and quantised for one dtype.
class Input {
 public:
  Input(std::vector<float> floats, size_t rows, size_t n_in, WeightDtype dtype)
      : floats_(std::move(floats)), rows_(rows), n_in_(n_in) {
    quantized_ = std::move(*QuantizedRows::Create(rows, n_in));
    for (size_t r = 0; r < rows; ++r) {
      quantized_.Quantize(floats_.data() + r * n_in, n_in, dtype, r);
    }
  }

  MatMulInput all() const { return {floats_.data(), rows_, n_in_, &quantized_}; }

 private:
  std::vector<float> floats_;
  size_t rows_;
  size_t n_in_;
  QuantizedRows quantized_;
};

AlignedBuffer<float> Buffer(size_t n) {
  return std::move(*AlignedBuffer<float>::Create(n, "a test"));
}

struct Case {
  size_t rows, n_in, n_out;
};

class MatMulTest : public testing::TestWithParam<std::tuple<Case, WeightDtype>> {};

TEST_P(MatMulTest, AgreesWithItsNaiveTwinToTheBit) {
  const auto [shape, dtype] = GetParam();
  const auto [rows, n_in, n_out] = shape;
  TestRandom random(1);
  const PackedMatrix w = RandomMatrix(random, n_in, n_out, dtype);
  AlignedBuffer<float> bias = Buffer(PaddedSize(n_out));
  for (size_t o = 0; o < n_out; ++o) bias[o] = static_cast<float>(o) * 0.1f;
  const size_t stride = PaddedSize(n_out);
  const Input x(RandomFloats(random, rows * n_in), rows, n_in, dtype);
  for (const float* b :
       {static_cast<const float*>(bias.data()), static_cast<const float*>(nullptr)}) {
    AlignedBuffer<float> fast = Buffer(rows * stride);
    std::vector<float> naive(rows * stride);
    MatMul(x.all(), w, b, fast.data(), stride);
    NaiveMatMul(x.all(), w, b, naive.data(), stride);
    EXPECT_EQ(0, std::memcmp(fast.data(), naive.data(), naive.size() * sizeof(float)));
  }
}

TEST_P(MatMulTest, ARowsBitsDoNotDependOnTheRowsBesideIt) {
  const auto [shape, dtype] = GetParam();
  const auto [rows, n_in, n_out] = shape;
  TestRandom random(2);
  const PackedMatrix w = RandomMatrix(random, n_in, n_out, dtype);
  const size_t stride = PaddedSize(n_out);
  const std::vector<float> floats = RandomFloats(random, rows * n_in);
  AlignedBuffer<float> together = Buffer(rows * stride);
  AlignedBuffer<float> alone = Buffer(stride);
  MatMul(Input(floats, rows, n_in, dtype).all(), w, nullptr, together.data(), stride);
  for (size_t r = 0; r < rows; ++r) {
    const auto begin = floats.begin() + static_cast<std::ptrdiff_t>(r * n_in);
    const Input row({begin, begin + static_cast<std::ptrdiff_t>(n_in)}, 1, n_in, dtype);
    MatMul(row.all(), w, nullptr, alone.data(), stride);
    EXPECT_EQ(0, std::memcmp(alone.data(), together.data() + r * stride,
                             stride * sizeof(float)))
        << "row " << r;
  }
}

TEST_P(MatMulTest, AnyNumberOfThreadsGivesTheSameBits) {
  const auto [shape, dtype] = GetParam();
  const auto [rows, n_in, n_out] = shape;
  TestRandom random(3);
  // Several pieces for the threads to claim, and a remainder.
  const size_t outputs = n_out + 300;
  const PackedMatrix w = RandomMatrix(random, n_in, outputs, dtype);
  const size_t stride = PaddedSize(outputs);
  const Input x(RandomFloats(random, rows * n_in), rows, n_in, dtype);
  std::vector<float> naive(rows * stride);
  NaiveMatMul(x.all(), w, nullptr, naive.data(), stride);
  for (const size_t count : {1, 2, 3, 8}) {
    NativeThreads threads(count);
    AlignedBuffer<float> out = Buffer(rows * stride);
    MatMul(x.all(), w, nullptr, out.data(), stride, threads.pool());
    EXPECT_EQ(0, std::memcmp(out.data(), naive.data(), naive.size() * sizeof(float)))
        << count << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, MatMulTest,
    testing::Combine(testing::Values(Case{1, 1, 1}, Case{1, 5, 16}, Case{1, 7, 32},
                                     Case{1, 33, 50}, Case{1, 9, 47}, Case{2, 8, 17},
                                     Case{3, 64, 48}, Case{4, 3, 31}, Case{5, 20, 15},
                                     Case{7, 11, 70}, Case{17, 48, 144},
                                     Case{1, 65, 40}, Case{2, 128, 33},
                                     Case{3, 129, 16}, Case{4, 200, 50},
                                     Case{5, 200, 50}),
                     testing::ValuesIn(kDtypes)));

TEST(QuantizedMatMulTest, IsNearTheProductOfTheFloats) {
  constexpr size_t kIn = 256, kOut = 64, kRows = 8;
  TestRandom random(4);
  const std::vector<float> weights = RandomFloats(random, kIn * kOut, 0.1f);
  const std::vector<float> floats = RandomFloats(random, kRows * kIn);
  std::vector<float> exact(kRows * kOut);
  const Input as_floats(floats, kRows, kIn, WeightDtype::kF32);
  NaiveMatMul(as_floats.all(), Pack(weights, kIn, kOut, WeightDtype::kF32), nullptr,
              exact.data(), kOut);
  // Roundings of 1/254 of a group's range in weights and 1/126 in activations, or 1/16
  // and 1/254, of which a random sum keeps the proportion.
  for (const auto& [dtype, tolerance] :
       {std::pair{WeightDtype::kQ8, 0.02}, std::pair{WeightDtype::kQ4, 0.12}}) {
    std::vector<float> rounded(kRows * kOut);
    const Input x(floats, kRows, kIn, dtype);
    NaiveMatMul(x.all(), Pack(weights, kIn, kOut, dtype), nullptr, rounded.data(),
                kOut);
    double error = 0, size = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      error += (exact[i] - rounded[i]) * (exact[i] - rounded[i]);
      size += exact[i] * exact[i];
    }
    EXPECT_LT(std::sqrt(error / size), tolerance);
    EXPECT_GT(error, 0);
  }
}

TEST(QuantizedMatMulTest, AnInputThatIsNotFiniteIsNotTakenForANumber) {
  constexpr size_t kIn = 64, kOut = 16;
  TestRandom random(5);
  for (const WeightDtype dtype : {WeightDtype::kQ8, WeightDtype::kQ4}) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      std::vector<float> floats = RandomFloats(random, kIn);
      floats[40] = bad;
      AlignedBuffer<float> out = Buffer(kOut);
      MatMul(Input(floats, 1, kIn, dtype).all(), RandomMatrix(random, kIn, kOut, dtype),
             nullptr, out.data(), kOut);
      for (size_t o = 0; o < kOut; ++o) EXPECT_TRUE(std::isnan(out[o]));

      std::vector<float> weights = RandomFloats(random, kIn * kOut);
      weights[40 * kOut + 3] = bad;
      MatMul(Input(RandomFloats(random, kIn), 1, kIn, dtype).all(),
             Pack(weights, kIn, kOut, dtype), nullptr, out.data(), kOut);
      for (size_t o = 0; o < kOut; ++o) EXPECT_EQ(std::isnan(out[o]), o == 3);
    }
  }
}

}  // namespace
}  // namespace kvasm
