// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/peak/peak.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::peak {
namespace {

using namespace gradring::tests;

constexpr DType kFloating[] = {DType::f32, DType::f16, DType::bf16};

/// The arrays of one call.
struct Tiles {
  TypedArray a, b, y;
  std::int64_t tiles, rounds;

  Tiles(DType dtype, std::int64_t tile_count, std::int64_t round_count)
      : a(dtype, random_values(kRows * kK, 1)),
        b(dtype, random_values(kK * kColumns, 2)),
        y(DType::f32, random_values(static_cast<std::size_t>(tile_count * kRows * kColumns), 3)),
        tiles(tile_count),
        rounds(round_count) {}

  Args args(TypedArray& to) const {
    return {.dtype = a.dtype(), .tiles = tiles, .rounds = rounds, .a = a.data(), .b = b.data(), .y = to.as<float>()};
  }
};

TEST(Peak, ComputesExactlyTheProductsThatItCounts) {
  for (DType dtype : kFloating)
    for (const std::int64_t tiles : {0, 1, 7, 9, 33, 130})
      for (const std::int64_t rounds : {0, 1, 5, 19})
        for_each_variant(kernel_set().peak, dtype, [&](const Variant& variant, Stream& stream) {
          const Tiles problem(dtype, tiles, rounds);
          TypedArray expected = problem.y;
          TypedArray actual = problem.y;
          reference_run(problem.args(expected));
          variant.run(stream, problem.args(actual));
          finish(stream);
          const std::vector<double> before = problem.y.values();
          const std::vector<double> after = expected.values();
          expect_close(actual.values(), after, [&](std::size_t i) {
            const double most = std::max(std::fabs(before[i]), std::fabs(after[i])) + 16;
            return 32 * static_cast<double>(rounds) * 0x1p-24 * most;
          });
        });
}

TEST(Peak, CountsItsOperations) { EXPECT_EQ(flops({.tiles = 3, .rounds = 5}), 2.0 * 16 * 16 * 8 * 3 * 5); }

TEST(Peak, RejectsNegativeCountsNullAndOtherTypes) {
  const Tiles problem(DType::f32, 1, 1);
  TypedArray y = problem.y;
  const auto refused = [&](auto spoil) {
    Args args = problem.args(y);
    spoil(args);
    EXPECT_THROW(check_args(args), InvalidArgument);
  };
  refused([](Args& args) { args.tiles = -1; });
  refused([](Args& args) { args.rounds = -1; });
  refused([](Args& args) { args.a = nullptr; });
  refused([](Args& args) { args.b = nullptr; });
  refused([](Args& args) { args.y = nullptr; });
  refused([](Args& args) { args.dtype = DType::i32; });
}

}  // namespace
}  // namespace gradring::kernels::peak
