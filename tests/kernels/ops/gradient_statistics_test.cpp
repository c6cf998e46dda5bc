// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/gradient_statistics/gradient_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::gradient_statistics {
namespace {

using namespace gradring::tests;

constexpr std::size_t kSizes[] = {0, 1, 31, 32, 33, 1023, 20001};
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

struct Results {
  float sum = -1;
  std::int32_t non_finite = -1;
  std::int64_t first = -2;
  std::int64_t tiny = -1;
};

Args args_of(const TypedArray& x, float tiny, Results& results, std::vector<float>& workspace) {
  workspace.assign(workspace_bytes(x.elements()) / sizeof(float) + 1, std::nanf(""));
  return {.dtype = x.dtype(),
          .x = x.data(),
          .elements = x.elements(),
          .tiny = tiny,
          .sum = &results.sum,
          .non_finite = &results.non_finite,
          .first_non_finite = &results.first,
          .tiny_count = &results.tiny,
          .workspace = workspace.data()};
}

Results run(const Variant& variant, Stream& stream, const TypedArray& x, float tiny = 0) {
  Results results;
  std::vector<float> workspace;
  variant.run(stream, args_of(x, tiny, results, workspace));
  finish(stream);
  return results;
}

Results run_reference(const TypedArray& x, float tiny = 0) {
  Results results;
  std::vector<float> workspace;
  reference_run(args_of(x, tiny, results, workspace));
  return results;
}

TEST(GradientStatistics, StaysWithinItsBound) {
  for (DType dtype : kTypes)
    for (std::size_t elements : kSizes)
      for_each_variant(kernel_set().gradient_statistics, dtype, [&](const Variant& variant, Stream& stream) {
        const TypedArray x(dtype, random_values(elements, 1));
        const float tiny = 0.125f;
        const Results expected = run_reference(x, tiny), actual = run(variant, stream, x, tiny);
        EXPECT_NEAR(actual.sum, expected.sum, (static_cast<double>(elements) / 65536 + 300) * 0x1p-24 * expected.sum);
        EXPECT_EQ(actual.tiny, expected.tiny);
        EXPECT_EQ(actual.first, -1);
        for (const Results& results : {expected, actual}) EXPECT_EQ(results.non_finite, 0);
        if (elements > 1000) {
          EXPECT_GT(expected.tiny, 0);
          EXPECT_LT(expected.tiny, static_cast<std::int64_t>(elements) / 2);
        }
      });
}

TEST(GradientStatistics, GivesTheSameBitsForElementsAlignedToOneElement) {
  for (DType dtype : kTypes) {
    std::vector<double> values = random_values(1023, 5);
    const TypedArray aligned(dtype, values);
    values.insert(values.begin(), 100.0);
    const TypedArray shifted(dtype, values);
    for_each_variant(kernel_set().gradient_statistics, dtype, [&](const Variant& variant, Stream& stream) {
      const Results expected = run(variant, stream, aligned, 0.125f);
      Results actual;
      std::vector<float> workspace;
      Args args = args_of(aligned, 0.125f, actual, workspace);
      args.x = static_cast<const std::byte*>(shifted.data()) + size_of(dtype);
      variant.run(stream, args);
      finish(stream);
      EXPECT_EQ(actual.sum, expected.sum);
      EXPECT_EQ(actual.tiny, expected.tiny);
      EXPECT_EQ(actual.non_finite, 0);
    });
  }
}

TEST(GradientStatistics, ReportsTheFirstNonFiniteAndCountsTinyNumbers) {
  const std::size_t elements = 20 * kBlock + 17;
  for (const std::size_t first : {std::size_t{0}, std::size_t{63}, std::size_t{64}, 7 * kBlock + 5, elements - 1}) {
    std::vector<double> values(elements, 1.0);
    for (const std::size_t also : {first, first + 1, elements - 1})
      if (also < elements) values[also] = std::nan("");
    for (const std::size_t tiny : {std::size_t{70}, 8 * kBlock, 8 * kBlock + 1}) values[tiny] = 0.25;
    const TypedArray x(DType::f32, values);
    const Results expected = run_reference(x, 0.5f);
    EXPECT_EQ(expected.first, static_cast<std::int64_t>(first));
    EXPECT_EQ(expected.tiny, first == 64 || first == 63 ? 2 : 3);
    for_each_variant(kernel_set().gradient_statistics, DType::f32, [&](const Variant& variant, Stream& stream) {
      const Results actual = run(variant, stream, x, 0.5f);
      EXPECT_EQ(actual.first, expected.first);
      EXPECT_EQ(actual.tiny, expected.tiny);
      EXPECT_EQ(actual.non_finite, 1);
    });
  }
}

TEST(GradientStatistics, TotalsMoreBlocksThanItsThreadsLoadAtOnce) {
  constexpr std::size_t kCount = 9001;
  constexpr std::size_t kBad = 8500;
  std::vector<float> blocks(kCount), notes(kCount);
  for (std::size_t i = 0; i < kCount; ++i) blocks[i] = static_cast<float>(i % 7), notes[i] = static_cast<float>(i % 3);
  const float sum = std::accumulate(blocks.begin(), blocks.end(), 0.0f);  // exact, as all of its parts
  const auto tiny = static_cast<std::int64_t>(std::accumulate(notes.begin(), notes.end(), 0.0f));
  for_each_variant(kernel_set().gradient_statistics, DType::f32, [&](const Variant& variant, Stream& stream) {
    const auto total = [&] {
      Results results;
      unsigned arrivals = 0;
      variant.finish(stream, {.blocks = blocks.data(),
                              .notes = notes.data(),
                              .count = kCount,
                              .sum = &results.sum,
                              .non_finite = &results.non_finite,
                              .first_non_finite = &results.first,
                              .tiny_count = &results.tiny,
                              .arrivals = &arrivals});
      finish(stream);
      return results;
    };
    const Results finite = total();
    EXPECT_EQ(finite.sum, sum);
    EXPECT_EQ(finite.tiny, tiny);
    EXPECT_EQ(finite.first, -1);
    const float sum_of_bad = std::exchange(blocks[kBad], std::nanf(""));
    const float note_of_bad = std::exchange(notes[kBad], -1.0f - 5.0f);
    EXPECT_EQ(total().first, static_cast<std::int64_t>(kBad * kBlock + 5));
    blocks[kBad] = sum_of_bad, notes[kBad] = note_of_bad;
  });
}

TEST(GradientStatistics, CountsZerosAsTinyButNotTheThreshold) {
  const std::vector<double> values = {0, -0.0, 0x1p-24, -0x1p-24, 0x1p-25, -0x1p-25, 1};
  for_each_variant(kernel_set().gradient_statistics, DType::f32, [&](const Variant& variant, Stream& stream) {
    EXPECT_EQ(run(variant, stream, TypedArray(DType::f32, values), 0x1p-24f).tiny, 4);
    EXPECT_EQ(run(variant, stream, TypedArray(DType::f32, values), 0).tiny, 0) << "nothing is below 0";
  });
}

TEST(GradientStatistics, FindsOneNonFiniteNumberAnywhere) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto expect_found = [](DType dtype, std::size_t where, double non_finite) {
    std::vector<double> values = random_values(20001, 2);
    values[where] = non_finite;
    const TypedArray x(dtype, values);
    for_each_variant(kernel_set().gradient_statistics, dtype, [&](const Variant& variant, Stream& stream) {
      const Results results = run(variant, stream, x);
      EXPECT_EQ(results.non_finite, 1) << non_finite << " at " << where;
      EXPECT_EQ(results.first, static_cast<std::int64_t>(where)) << non_finite;
    });
  };
  for (std::size_t where : {0, 31, 8191, 20000}) expect_found(DType::f32, where, infinity);
  for (DType dtype : kTypes)
    for (double non_finite : {-infinity, std::numeric_limits<double>::quiet_NaN()}) expect_found(dtype, 33, non_finite);
}

TEST(GradientStatistics, OverflowOfTheSumIsNotNonFinite) {
  for_each_variant(kernel_set().gradient_statistics, DType::f32, [&](const Variant& variant, Stream& stream) {
    const Results results = run(variant, stream, TypedArray(DType::f32, std::vector<double>(100, 3e38)));
    EXPECT_TRUE(std::isinf(results.sum));
    EXPECT_EQ(results.non_finite, 0);
  });
}

TEST(GradientStatistics, GivesTheSameBitsForAnyWorkers) {
  const TypedArray x(DType::f32, random_values(100003, 3));
  for (const Variant& variant : kernel_set().gradient_statistics) {
    std::vector<float> sums;
    for_each_stream([&](Device&, Stream& stream) { sums.push_back(run(variant, stream, x).sum); });
    for (float sum : sums) EXPECT_EQ(sum, sums.front());
  }
}

struct Blocks {
  std::vector<float> sums, notes;
  bool operator==(const Blocks&) const = default;
};

/// What `variant` makes of the blocks of `x`, computed in pieces that end behind `ends` blocks.
Blocks blocks_of(const Variant& variant, Stream& stream, std::span<const float> x,
                 std::initializer_list<std::size_t> ends) {
  Blocks blocks{std::vector<float>(block_count(x.size()), -1.0f), std::vector<float>(block_count(x.size()), -100.0f)};
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    const std::size_t last = std::min(end * kBlock, x.size());
    variant.blocks(stream, {.dtype = DType::f32,
                            .x = x.data() + begin * kBlock,
                            .elements = last - begin * kBlock,
                            .tiny = 0.125f,
                            .blocks = blocks.sums.data() + begin,
                            .notes = blocks.notes.data() + begin});
    begin = end;
  }
  finish(stream);
  return blocks;
}

// Ranks that hold shards of the gradients find the bits that one rank with all of them finds.
TEST(GradientStatistics, GivesTheSameBitsInPieces) {
  const std::vector<double> values = random_values(20 * kBlock + 17, 4);
  const std::vector<float> x(values.begin(), values.end());
  for_each_variant(kernel_set().gradient_statistics, DType::f32, [&](const Variant& variant, Stream& stream) {
    Blocks whole = blocks_of(variant, stream, x, {21});
    EXPECT_EQ(blocks_of(variant, stream, x, {1, 8, 13, 21}), whole);
    std::vector<float> longer(x);
    longer.resize(21 * kBlock, 0.0f);
    EXPECT_EQ(blocks_of(variant, stream, longer, {20, 21}).sums, whole.sums) << "zeros behind the end change nothing";
    for (std::size_t b = 0; b < whole.sums.size(); ++b) {
      double exact = 0;
      for (std::size_t i = b * kBlock; i < std::min((b + 1) * kBlock, x.size()); ++i)
        exact += double{x[i]} * double{x[i]};
      EXPECT_NEAR(whole.sums[b], exact, exact * 1e-6) << "block " << b;
    }
    Results results;
    unsigned arrivals = 0;
    variant.finish(stream, {.blocks = whole.sums.data(),
                            .notes = whole.notes.data(),
                            .count = whole.sums.size(),
                            .sum = &results.sum,
                            .non_finite = &results.non_finite,
                            .first_non_finite = &results.first,
                            .tiny_count = &results.tiny,
                            .arrivals = &arrivals});
    finish(stream);
    const Results at_once = run(variant, stream, TypedArray(DType::f32, values), 0.125f);
    EXPECT_EQ(results.sum, at_once.sum);
    EXPECT_EQ(results.tiny, at_once.tiny);
    EXPECT_EQ(results.non_finite, 0);
  });
}

TEST(GradientStatistics, MarksTheBlockOfANonFiniteElement) {
  std::vector<float> x(5 * kBlock, 1.0f);
  x[2 * kBlock + 63] = -std::numeric_limits<float>::infinity();
  x[3 * kBlock] = 3e38f;
  for_each_variant(kernel_set().gradient_statistics, DType::f32, [&](const Variant& variant, Stream& stream) {
    const Blocks blocks = blocks_of(variant, stream, x, {5});
    EXPECT_TRUE(std::isnan(blocks.sums[2]));
    EXPECT_EQ(blocks.notes[2], -64) << "the last one in its block";
    EXPECT_TRUE(std::isinf(blocks.sums[3])) << "its square overflows, but it is finite";
    EXPECT_EQ(blocks.notes[3], 0);
    for (const std::size_t good : {0, 1, 4}) EXPECT_EQ(blocks.sums[good], 64.0f);
  });
}

TEST(GradientStatistics, RejectsNullAndOtherTypes) {
  float number = 0;
  std::int32_t flag = 0;
  std::int64_t index = 0;
  const Args good{DType::f32, &number, 1, 0, &number, &flag, &index, &index, &number};
  EXPECT_NO_THROW(check_args(good));
  const auto rejects = [](auto args, auto spoil) {
    spoil(args);
    EXPECT_THROW(check_args(args), InvalidArgument);
  };
  rejects(good, [](Args& args) { args.x = nullptr; });
  rejects(good, [](Args& args) { args.sum = nullptr; });
  rejects(good, [](Args& args) { args.non_finite = nullptr; });
  rejects(good, [](Args& args) { args.first_non_finite = nullptr; });
  rejects(good, [](Args& args) { args.tiny_count = nullptr; });
  rejects(good, [](Args& args) { args.workspace = nullptr; });
  rejects(good, [](Args& args) { args.dtype = DType::i64; });
  const BlocksArgs blocks{DType::f32, &number, 1, 0, &number, &number};
  EXPECT_NO_THROW(check_args(blocks));
  rejects(blocks, [](BlocksArgs& args) { args.blocks = nullptr; });
  rejects(blocks, [](BlocksArgs& args) { args.notes = nullptr; });
  rejects(blocks, [](BlocksArgs& args) { args.dtype = DType::i64; });
  unsigned arrivals = 0;
  const FinishArgs finishing{.blocks = &number,
                             .notes = &number,
                             .count = 1,
                             .sum = &number,
                             .non_finite = &flag,
                             .first_non_finite = &index,
                             .tiny_count = &index,
                             .arrivals = &arrivals};
  EXPECT_NO_THROW(check_args(finishing));
  rejects(finishing, [](FinishArgs& args) { args.blocks = nullptr; });
  rejects(finishing, [](FinishArgs& args) { args.notes = nullptr; });
  rejects(finishing, [](FinishArgs& args) { args.tiny_count = nullptr; });
  rejects(finishing, [](FinishArgs& args) { args.arrivals = nullptr; });
  rejects(finishing, [](FinishArgs& args) { args.prepare.sum_of_squares = args.sum + 1; });
}

}  // namespace
}  // namespace gradring::kernels::gradient_statistics
