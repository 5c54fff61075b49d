#include "kernels/packed_matrix.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/float16.h"
#include "kernels/matrix_writer.h"
#include "random_model.h"

namespace kvasm {
namespace {

class PackedMatrixTest : public testing::TestWithParam<WeightDtype> {};

TEST_P(PackedMatrixTest, Conv1dAndLinearOrderFillTheSameMatrixInAnyPieces) {
  const WeightDtype dtype = GetParam();
  TestRandom random(3);
  for (int round = 0; round < 50; ++round) {
    const size_t n_in = Uniform(random, 1, 100);
    const size_t n_out = Uniform(random, 1, 40);
    const std::vector<float> conv1d = RandomFloats(random, n_in * n_out);
    std::vector<float> linear(conv1d.size());
    for (size_t i = 0; i < n_in; ++i) {
      for (size_t o = 0; o < n_out; ++o) linear[o * n_in + i] = conv1d[i * n_out + o];
    }
    PackedMatrix a = std::move(*PackedMatrix::Create(n_in, n_out, "a test", dtype));
    PackedMatrix b = std::move(*PackedMatrix::Create(n_in, n_out, "a test", dtype));
    MatrixWriter writer = std::move(*MatrixWriter::Create(n_out, dtype, "a test"));
    const auto fill = [&](MatrixOrder order, const std::vector<float>& elements,
                          PackedMatrix* matrix) {
      for (size_t at = 0; at < elements.size();) {
        const size_t count = std::min(Uniform(random, 1, 50), elements.size() - at);
        writer.Write(order, at, elements.data() + at, count, matrix);
        at += count;
      }
    };
    fill(MatrixOrder::kConv1d, conv1d, &a);
    fill(MatrixOrder::kLinear, linear, &b);
    std::vector<float> row(n_in);
    for (size_t o = 0; o < n_out; ++o) {
      a.GatherOutput(o, row.data());
      for (size_t i = 0; i < n_in; ++i) {
        ASSERT_EQ(a.At(i, o), b.At(i, o));
        ASSERT_EQ(a.At(i, o), row[i]);
        if (dtype == WeightDtype::kF32) {
          ASSERT_EQ(row[i], conv1d[i * n_out + o]);
        }
      }
    }
  }
}

TEST_P(PackedMatrixTest, TakesTheBytesThatItsDtypeDoes) {
  const PackedMatrix w = std::move(*PackedMatrix::Create(64, 32, "a test", GetParam()));
  const size_t bits = GetParam() == WeightDtype::kF32  ? 32 * 2
                      : GetParam() == WeightDtype::kQ8 ? 9 * 2
                                                       : 9;
  EXPECT_EQ(w.bytes(), 64 * 32 * bits / 2 / 8);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, PackedMatrixTest,
                         testing::Values(WeightDtype::kF32, WeightDtype::kQ8,
                                         WeightDtype::kQ4));

TEST(QuantizeTest, Q8IsWithinHalfAStepAndReachesItsEnds) {
  TestRandom random(6);
  for (int round = 0; round < 1000; ++round) {
    const float std_dev = std::pow(10.0f, static_cast<float>(round % 20) - 10);
    const std::vector<float> values = RandomFloats(random, kQuantGroup, std_dev);
    const QuantizedGroup group = QuantizeQ8(values.data());
    const float scale = BFloat16ToFloat(group.scale);
    int most = 0;
    for (size_t i = 0; i < kQuantGroup; ++i) {
      most = std::max(most, std::abs(group.q[i]));
      EXPECT_LE(std::abs(values[i] - scale * group.q[i]), scale * 0.5001f);
    }
    // Less than 127 only by the rounding of the scale.
    EXPECT_GE(most, 126);
    EXPECT_LE(most, 127);
  }
}

float BFloat16AwayFromZero(float x) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0xFFFFu) & 0xFFFF0000u);
}

TEST(QuantizeTest, Q4HasNoGreaterErrorThanTheScaleThatMakesTheLargestValueMinus8) {
  TestRandom random(7);
  for (int round = 0; round < 1000; ++round) {
    const std::vector<float> values = RandomFloats(random, kQuantGroup);
    const QuantizedGroup group = QuantizeQ4(values.data());
    const float scale = BFloat16ToFloat(group.scale);
    float extreme = 0;
    for (const float v : values) {
      if (std::abs(v) > std::abs(extreme)) extreme = v;
    }
    double error = 0, plain_error = 0;
    for (size_t i = 0; i < kQuantGroup; ++i) {
      EXPECT_GE(group.q[i], -8);
      EXPECT_LE(group.q[i], 7);
      const double plain_scale = BFloat16AwayFromZero(extreme / -8);
      const double plain =
          plain_scale * std::clamp(std::round(values[i] / plain_scale), -8.0, 7.0);
      error += std::pow(values[i] - scale * group.q[i], 2);
      plain_error += std::pow(values[i] - plain, 2);
    }
    EXPECT_LE(error, plain_error * 1.0001);
  }
}

TEST(QuantizeTest, ZerosAndTinyValuesBecomeZero) {
  for (const float value : {0.0f, 1e-35f, 1e-44f}) {
    const std::vector<float> values(kQuantGroup, value);
    for (const QuantizedGroup& group :
         {QuantizeQ8(values.data()), QuantizeQ4(values.data())}) {
      for (size_t i = 0; i < kQuantGroup; ++i) EXPECT_EQ(group.q[i], 0);
    }
  }
}

}  // namespace
}  // namespace kvasm
