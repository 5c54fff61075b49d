#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/aligned_buffer.h"
#include "kernels/elementwise.h"
#include "kernels/exp.h"
#include "kernels/layer_norm.h"
#include "random_model.h"

namespace kvasm {
namespace {

AlignedBuffer<float> Buffer(size_t n) {
  return std::move(*AlignedBuffer<float>::Create(n, ""));
}

TEST(LayerNormTest, AgreesWithDoublePrecision) {
  TestRandom random(1);
  for (size_t n = 1; n < 70; ++n) {
    const size_t rows = 3;
    const size_t stride = PaddedSize(n);
    AlignedBuffer<float> x = Buffer(rows * stride), out = Buffer(rows * stride);
    AlignedBuffer<float> gain = Buffer(stride), bias = Buffer(stride);
    // What lies in the padding must not count.
    for (float& v : std::span(x.data(), x.size())) v = 1e9f;
    for (size_t i = 0; i < n; ++i) {
      gain[i] = 1.0f + RandomFloats(random, 1, 0.2f)[0];
      bias[i] = RandomFloats(random, 1, 0.2f)[0];
      for (size_t r = 0; r < rows; ++r)
        x[r * stride + i] = RandomFloats(random, 1)[0] + 3.0f;
    }
    std::vector<float> expected(rows * stride);
    LayerNorm(x.data(), rows, stride, n, gain.data(), bias.data(), 1e-5f, out.data());
    NaiveLayerNorm(x.data(), rows, stride, n, gain.data(), bias.data(), 1e-5f,
                   expected.data());
    for (size_t r = 0; r < rows; ++r) {
      for (size_t i = 0; i < n; ++i) {
        // The mean of n values near 3 is off by some ulps of 3; relative to a deviation
        // near 1, a few 1e-6. For tiny n the deviation can be small, which enlarges
        // that.
        ASSERT_NEAR(out[r * stride + i], expected[r * stride + i], 2e-5) << n;
      }
    }
  }
}

float ExpOf(float x) { return hn::GetLane(Exp(hn::Set(kFloatTag, x))); }

TEST(ExpTest, IsWithinTwoUnitsInTheLastPlace) {
  for (float x = -87.0f; x < 88.3f; x += 0.0007f) {
    const double expected = std::exp(static_cast<double>(x));
    const double unit = std::ldexp(1.0, std::ilogb(expected) - 23);
    ASSERT_NEAR(ExpOf(x), expected, 2 * unit) << x;
  }
}

TEST(ExpTest, EndsInZeroAndInfinityAndKeepsNaN) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ExpOf(0.0f), 1.0f);
  for (const float x : {-87.1f, -126.0f, -1e30f, -kInfinity}) EXPECT_EQ(ExpOf(x), 0.0f);
  for (const float x : {88.8f, kLargestExp}) EXPECT_EQ(ExpOf(x), kInfinity);
  EXPECT_TRUE(std::isnan(ExpOf(std::numeric_limits<float>::quiet_NaN())));
}

TEST(GeluNewTest, IsTheTanhFormB79) {
  AlignedBuffer<float> x = Buffer(16);
  x[0] = 1.0f;
  x[1] = -3.0f;
  GeluNew(x.data(), 16);
  EXPECT_NEAR(x[0], 0.8411920f, 1e-6);   // The erf form: 0.8413447.
  EXPECT_NEAR(x[1], -0.0036374f, 1e-6);  // The erf form: -0.0040497.
}

TEST(GeluNewTest, AgreesWithDoublePrecisionFromEndToEnd) {
  constexpr size_t kCount = 16 * 1000;
  AlignedBuffer<float> x = Buffer(kCount), expected = Buffer(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    // Up to 1000 at both ends, and densest around 0.
    const float t = -1.0f + 2.0f * static_cast<float>(i) / kCount;
    x[i] = expected[i] = 1000.0f * t * t * t;
  }
  GeluNew(x.data(), kCount);
  NaiveGeluNew(expected.data(), kCount);
  for (size_t i = 0; i < kCount; ++i) {
    // Some ulps of the exponential, and absolutely as little where the result goes to
    // 0.
    ASSERT_NEAR(x[i], expected[i], 1e-6f * std::max(1.0f, std::fabs(expected[i])));
  }
}

TEST(GeluNewTest, SaturatesAtBothEnds) {
  AlignedBuffer<float> x = Buffer(16);
  x[0] = -1e30f;
  x[1] = 1e30f;
  x[2] = std::numeric_limits<float>::quiet_NaN();
  GeluNew(x.data(), 16);
  EXPECT_EQ(x[0], 0.0f);
  EXPECT_EQ(x[1], 1e30f);
  EXPECT_TRUE(std::isnan(x[2]));
}

TEST(AddToTest, Adds) {
  AlignedBuffer<float> x = Buffer(32), y = Buffer(32);
  for (size_t i = 0; i < 32; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = 100.0f;
  }
  AddTo(x.data(), y.data(), 32);
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(x[i], 100.0f + static_cast<float>(i));
}

}  // namespace
}  // namespace kvasm
