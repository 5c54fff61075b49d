#include "kernels/matmul.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/native_threads.h"
#include "random_model.h"

namespace kvasm {
namespace {

struct Case {
  size_t rows, n_in, n_out;
};

class MatMulTest : public testing::TestWithParam<Case> {};

PackedMatrix RandomMatrix(TestRandom& random, size_t n_in, size_t n_out) {
  PackedMatrix w = std::move(*PackedMatrix::Create(n_in, n_out, "a test"));
  const std::vector<float> elements = RandomFloats(random, n_in * n_out);
  w.StoreConv1d(0, elements.data(), elements.size());
  return w;
}

TEST_P(MatMulTest, AgreesWithItsNaiveTwinToTheBit) {
  const auto [rows, n_in, n_out] = GetParam();
  TestRandom random(1);
  const PackedMatrix w = RandomMatrix(random, n_in, n_out);
  AlignedBuffer<float> bias =
      std::move(*AlignedBuffer<float>::Create(PaddedSize(n_out), ""));
  for (size_t o = 0; o < n_out; ++o) bias[o] = static_cast<float>(o) * 0.1f;
  const size_t stride = PaddedSize(n_out);
  const std::vector<float> x = RandomFloats(random, rows * n_in);
  for (const float* b :
       {static_cast<const float*>(bias.data()), static_cast<const float*>(nullptr)}) {
    AlignedBuffer<float> fast =
        std::move(*AlignedBuffer<float>::Create(rows * stride, ""));
    std::vector<float> naive(rows * stride);
    MatMul(x.data(), rows, n_in, w, b, fast.data(), stride);
    NaiveMatMul(x.data(), rows, n_in, w, b, naive.data(), stride);
    EXPECT_EQ(0, std::memcmp(fast.data(), naive.data(), naive.size() * sizeof(float)));
  }
}

TEST_P(MatMulTest, ARowsBitsDoNotDependOnTheRowsBesideIt) {
  const auto [rows, n_in, n_out] = GetParam();
  TestRandom random(2);
  const PackedMatrix w = RandomMatrix(random, n_in, n_out);
  const size_t stride = PaddedSize(n_out);
  const std::vector<float> x = RandomFloats(random, rows * n_in);
  AlignedBuffer<float> together =
      std::move(*AlignedBuffer<float>::Create(rows * stride, ""));
  AlignedBuffer<float> alone = std::move(*AlignedBuffer<float>::Create(stride, ""));
  MatMul(x.data(), rows, n_in, w, nullptr, together.data(), stride);
  for (size_t r = 0; r < rows; ++r) {
    MatMul(x.data() + r * n_in, 1, n_in, w, nullptr, alone.data(), stride);
    EXPECT_EQ(0, std::memcmp(alone.data(), together.data() + r * stride,
                             stride * sizeof(float)))
        << "row " << r;
  }
}

TEST_P(MatMulTest, AnyNumberOfThreadsGivesTheSameBits) {
  const auto [rows, n_in, n_out] = GetParam();
  TestRandom random(3);
  // Several pieces for the threads to claim, and a remainder.
  const size_t outputs = n_out + 300;
  const PackedMatrix w = RandomMatrix(random, n_in, outputs);
  const size_t stride = PaddedSize(outputs);
  const std::vector<float> x = RandomFloats(random, rows * n_in);
  std::vector<float> naive(rows * stride);
  NaiveMatMul(x.data(), rows, n_in, w, nullptr, naive.data(), stride);
  for (const size_t count : {1, 2, 3, 8}) {
    NativeThreads threads(count);
    AlignedBuffer<float> out =
        std::move(*AlignedBuffer<float>::Create(rows * stride, ""));
    MatMul(x.data(), rows, n_in, w, nullptr, out.data(), stride, threads.pool());
    EXPECT_EQ(0, std::memcmp(out.data(), naive.data(), naive.size() * sizeof(float)))
        << count << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, MatMulTest,
    testing::Values(Case{1, 1, 1}, Case{1, 5, 16}, Case{1, 7, 32}, Case{1, 33, 50},
                    Case{1, 9, 47}, Case{2, 8, 17}, Case{3, 64, 48}, Case{4, 3, 31},
                    Case{5, 20, 15}, Case{7, 11, 70}, Case{17, 48, 144},
                    Case{1, 65, 40}, Case{2, 128, 33}, Case{3, 129, 16},
                    Case{4, 200, 50}, Case{5, 200, 50}));

TEST(PackedMatrixTest, Conv1dAndLinearOrderFillTheSameMatrixInAnyPieces) {
  TestRandom random(3);
  for (int round = 0; round < 50; ++round) {
    const size_t n_in = Uniform(random, 1, 40);
    const size_t n_out = Uniform(random, 1, 40);
    const std::vector<float> conv1d = RandomFloats(random, n_in * n_out);
    std::vector<float> linear(conv1d.size());
    for (size_t i = 0; i < n_in; ++i) {
      for (size_t o = 0; o < n_out; ++o) linear[o * n_in + i] = conv1d[i * n_out + o];
    }
    PackedMatrix a = std::move(*PackedMatrix::Create(n_in, n_out, "a test"));
    PackedMatrix b = std::move(*PackedMatrix::Create(n_in, n_out, "a test"));
    for (size_t at = 0; at < conv1d.size();) {
      const size_t count = std::min(Uniform(random, 1, 50), conv1d.size() - at);
      a.StoreConv1d(at, conv1d.data() + at, count);
      b.StoreLinear(at, linear.data() + at, count);
      at += count;
    }
    std::vector<float> row(n_in);
    for (size_t o = 0; o < n_out; ++o) {
      a.GatherOutput(o, row.data());
      for (size_t i = 0; i < n_in; ++i) {
        ASSERT_EQ(a.At(i, o), conv1d[i * n_out + o]);
        ASSERT_EQ(b.At(i, o), conv1d[i * n_out + o]);
        ASSERT_EQ(row[i], conv1d[i * n_out + o]);
      }
    }
  }
}

}  // namespace
}  // namespace kvasm
