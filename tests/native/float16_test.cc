#include "base/float16.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kvasm {
namespace {

TEST(Float16Test, SubnormalsAreExactB80) {
  EXPECT_EQ(Float16ToFloat(0x0001), 0x1p-24f);
  EXPECT_EQ(Float16ToFloat(0x03FF), 1023 * 0x1p-24f);
  EXPECT_EQ(Float16ToFloat(0x8001), -0x1p-24f);
  EXPECT_EQ(Float16ToFloat(0x0400), 0x1p-14f);
}

TEST(Float16Test, EveryPatternMeansWhatTheDefinitionSays) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const double fraction = bits & 1023;
    const double sign = bits & 0x8000 ? -1.0 : 1.0;
    const float value = Float16ToFloat(static_cast<uint16_t>(bits));
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(value), fraction != 0);
      EXPECT_EQ(std::isinf(value), fraction == 0);
      continue;
    }
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
    EXPECT_EQ(value, static_cast<float>(sign * magnitude));
    EXPECT_EQ(std::signbit(value), sign < 0);
  }
}

TEST(Float16Test, EveryNumberRoundsToTheNearestTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const uint16_t low = static_cast<uint16_t>(bits);
    const float value = Float16ToFloat(low);
    EXPECT_EQ(FloatToFloat16(value), low);
    EXPECT_EQ(FloatToFloat16(-value), low | 0x8000);
    // Halfway to the next number, which for the last is 65536.
    const double next =
        bits == 0x7BFF ? 65536.0 : Float16ToFloat(static_cast<uint16_t>(bits + 1));
    const float middle = static_cast<float>((value + next) / 2);
    EXPECT_EQ(FloatToFloat16(middle), low + (low & 1)) << bits;
    EXPECT_EQ(FloatToFloat16(std::nextafter(middle, 0.0f)), low) << bits;
    EXPECT_EQ(FloatToFloat16(std::nextafter(middle, 1e30f)), low + 1) << bits;
  }
  EXPECT_TRUE(std::isnan(Float16ToFloat(FloatToFloat16(NAN))));
  EXPECT_EQ(FloatToFloat16(INFINITY), 0x7C00);
  EXPECT_EQ(FloatToFloat16(-1e30f), 0xFC00);
}

TEST(Float16Test, BFloat16IsTheUpperHalfOfAFloat) {
  EXPECT_EQ(BFloat16ToFloat(0x3F80), 1.0f);
  EXPECT_EQ(BFloat16ToFloat(0xC049), -3.140625f);
  EXPECT_EQ(BFloat16ToFloat(0x0001), 0x1p-133f);
}

}  // namespace
}  // namespace kvasm
