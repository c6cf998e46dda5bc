// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/exact_sum/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/kernel_variants.h"

namespace gradring::kernels::exact_sum {
namespace {

using namespace gradring::tests;

constexpr double kUnit = 0x1p-44;
constexpr std::int64_t kMost = std::int64_t{1} << 60;
constexpr std::size_t kSizes[] = {0, 1, 31, 32, 33, 1023, 20001};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Gradients as they come: many small ones, some large, zeros.
std::vector<float> gradients(std::size_t elements, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(elements);
  for (float& value : x) value = normal(random) * std::exp2(static_cast<float>(random() % 40) - 35);
  for (std::size_t i = 0; i < elements; i += 7) x[i] = 0;
  return x;
}

struct Sums {
  std::vector<std::int64_t> units;
  std::int64_t refused = 0;
  bool operator==(const Sums&) const = default;
};

AddArgs add_args(const std::vector<float>& x, Sums& sums, const float* scale = nullptr) {
  return {.elements = x.size(),
          .x = x.data(),
          .scale = scale,
          .units = sums.units.data(),
          .refused = &sums.refused,
          .unit = kUnit,
          .most = kMost};
}

ReadArgs read_args(const Sums& sums, std::vector<float>& x, const float* scale = nullptr) {
  return {.elements = x.size(),
          .units = sums.units.data(),
          .refused = &sums.refused,
          .scale = scale,
          .x = x.data(),
          .unit = kUnit};
}

TEST(ExactSum, MatchesTheReferenceBitForBit) {
  const float scale = 1024;
  for (const std::size_t elements : kSizes)
    for (const float* by : {static_cast<const float*>(nullptr), &scale})
      for_each_variant(kernel_set().exact_sum, DType::f32, [&](const Variant& variant, Stream& stream) {
        std::vector<float> x = gradients(elements, 1);
        if (elements > 20) x[5] = kInfinity, x[17] = -std::nanf(""), x[20] = 1e30f;
        Sums expected{.units = std::vector<std::int64_t>(elements, 3)}, actual = expected;
        reference_add(add_args(x, expected, by));
        variant.add(stream, add_args(x, actual, by));
        finish(stream);
        EXPECT_EQ(actual, expected);
        EXPECT_EQ(actual.refused, elements > 20 ? 3 : 0);

        actual.refused = expected.refused = 0;
        std::vector<float> read_by_it(elements), read(elements);
        reference_read(read_args(expected, read, by));
        variant.read(stream, read_args(actual, read_by_it, by));
        finish(stream);
        EXPECT_EQ(read_by_it, read);
      });
}

TEST(ExactSum, IsIndependentOfTheOrder) {
  constexpr std::size_t kElements = 257;
  std::vector<std::vector<float>> parts;
  for (unsigned i = 0; i < 24; ++i) parts.push_back(gradients(kElements, 100 + i));
  std::mt19937 random(7);
  for_each_variant(kernel_set().exact_sum, DType::f32, [&](const Variant& variant, Stream& stream) {
    Sums first;
    for (int order = 0; order < 6; ++order) {
      std::ranges::shuffle(parts, random);
      Sums sums{.units = std::vector<std::int64_t>(kElements)};
      for (const auto& part : parts) variant.add(stream, add_args(part, sums));
      finish(stream);
      if (order == 0) first = sums;
      EXPECT_EQ(sums, first);
    }
    EXPECT_EQ(first.refused, 0);
  });
}

TEST(ExactSum, IsWithinARoundingOfTheSum) {
  const std::vector<float> x = gradients(4001, 3), y = gradients(4001, 4);
  Sums sums{.units = std::vector<std::int64_t>(x.size())};
  reference_add(add_args(x, sums));
  reference_add(add_args(y, sums));
  std::vector<float> read(x.size());
  reference_read(read_args(sums, read));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = static_cast<double>(x[i]) + static_cast<double>(y[i]);
    EXPECT_NEAR(read[i], expected, kUnit + std::abs(expected) * 0x1p-24) << i;
  }
}

TEST(ExactSum, UndoesAndRestoresTheScale) {
  const std::vector<float> x = gradients(300, 5);
  const float scale = 65536;
  std::vector<float> scaled = x;
  for (float& value : scaled) value *= scale;
  for_each_variant(kernel_set().exact_sum, DType::f32, [&](const Variant& variant, Stream& stream) {
    Sums plain{.units = std::vector<std::int64_t>(x.size())}, by_scale = plain;
    variant.add(stream, add_args(x, plain));
    variant.add(stream, add_args(scaled, by_scale, &scale));
    std::vector<float> read(x.size()), read_scaled(x.size());
    variant.read(stream, read_args(plain, read));
    variant.read(stream, read_args(by_scale, read_scaled, &scale));
    finish(stream);
    EXPECT_EQ(plain, by_scale);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(read_scaled[i], read[i] * scale);
  });
}

TEST(ExactSum, RejectsOnlyValuesBeyondTheLimit) {
  const double most = static_cast<double>(kMost) * kUnit;
  const std::vector<float> x = {static_cast<float>(most), -static_cast<float>(most), static_cast<float>(most * 1.001),
                                kInfinity};
  const float scale = 256;
  std::vector<float> scaled = x;
  for (float& value : scaled) value *= scale;
  for_each_variant(kernel_set().exact_sum, DType::f32, [&](const Variant& variant, Stream& stream) {
    for (const bool is_scaled : {false, true}) {
      Sums sums{.units = std::vector<std::int64_t>(x.size())};
      variant.add(stream, add_args(is_scaled ? scaled : x, sums, is_scaled ? &scale : nullptr));
      finish(stream);
      EXPECT_EQ(sums.units, (std::vector<std::int64_t>{kMost, -kMost, 0, 0})) << is_scaled;
      EXPECT_EQ(sums.refused, 2);
      std::vector<float> read(x.size());
      variant.read(stream, read_args(sums, read));
      finish(stream);
      EXPECT_TRUE(std::ranges::all_of(read, [](float value) { return std::isnan(value); }));
    }
  });
}

TEST(ExactSum, RejectsBadArguments) {
  const std::vector<float> x(3);
  Sums sums{.units = std::vector<std::int64_t>(3)};
  const auto refused = [&](auto change) {
    AddArgs args = add_args(x, sums);
    change(args);
    EXPECT_THROW(check_args(args), InvalidArgument);
  };
  refused([](AddArgs& args) { args.x = nullptr; });
  refused([](AddArgs& args) { args.units = nullptr; });
  refused([](AddArgs& args) { args.refused = nullptr; });
  refused([](AddArgs& args) { args.unit = 0; });
  refused([](AddArgs& args) { args.most = 0; });
  std::vector<float> y(3);
  ReadArgs read = read_args(sums, y);
  read.refused = nullptr;
  EXPECT_THROW(check_args(read), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::exact_sum
