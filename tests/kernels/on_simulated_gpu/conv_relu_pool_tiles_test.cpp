// SPDX-License-Identifier: Apache-2.0
// The tiles of conv_relu_pool's gathered products, which are chosen by how many there are: see conv2d_tiles_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/ops/kernel_set.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::conv_relu_pool {
namespace {

using namespace gradring::tests;

/// Small multiples of a quarter: all sums are exact, so that every variant finds the same maxima.
std::vector<double> exact_values(std::int64_t elements, std::uint64_t seed) {
  std::vector<double> values = random_values(static_cast<std::size_t>(elements), seed, -2, 3);
  for (double& value : values) value = std::floor(value) / 4;
  return values;
}

TEST(ConvReluPoolTiles, ForwardFindsTheSameMaximaAndPassesNaN) {
  struct Sizes {
    std::int64_t height, width, filters;
  };
  for (const DType dtype : {DType::f16, DType::bf16})
    // Tiles of 128 x 64, 128 x 128, and 128 x 32
    for (const Sizes& sizes : {Sizes{133, 128, 64}, Sizes{60, 59, 520}, Sizes{12, 12, 24}}) {
      const Geometry g{.conv = {.batch = 1,
                                .in_height = sizes.height,
                                .in_width = sizes.width,
                                .in_channels = 8,
                                .out_channels = sizes.filters,
                                .kernel_height = 1,
                                .kernel_width = 1}};
      std::vector<double> inputs = exact_values(g.conv.in_elements(), 1);
      inputs[3 * 8 + 5] = std::numeric_limits<double>::quiet_NaN();  // of the second window
      const TypedArray x(dtype, inputs);
      const TypedArray w(dtype, exact_values(g.conv.weight_elements(), 2));
      const TypedArray b(dtype, exact_values(g.conv.out_channels, 3));
      TypedArray expected = TypedArray::unwritten(dtype, static_cast<std::size_t>(g.out_elements()));
      std::vector<std::uint8_t> expected_codes(static_cast<std::size_t>(g.code_bytes()));
      reference_forward({g, dtype, x.data(), w.data(), b.data(), expected.data(), expected_codes.data()});
      for_each_variant(kernel_set().conv_relu_pool, dtype, [&](const Variant& variant, Stream& stream) {
        if (!variant.computes || variant.name == "direct") return;
        TypedArray y = TypedArray::unwritten(dtype, expected.elements());
        std::vector<std::uint8_t> codes(expected_codes.size(), 0xee);
        variant.forward(stream, {g, dtype, x.data(), w.data(), b.data(), y.data(), codes.data(), nullptr});
        finish(stream);
        expect_equal(y.values(), expected.values());
        EXPECT_EQ(codes, expected_codes);
      });
    }
}

}  // namespace
}  // namespace gradring::kernels::conv_relu_pool
