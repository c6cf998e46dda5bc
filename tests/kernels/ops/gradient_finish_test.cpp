// SPDX-License-Identifier: Apache-2.0
// gradient_statistics: `finish` and `add_up`.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/gradient_statistics/gradient_statistics.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::gradient_statistics {
namespace {

using namespace gradring::tests;

/// The gradients of a step in two runs, most of them as partial sums: arrays of all sizes, in blocks that several of
/// them share.
class Gradients {
 public:
  Gradients() {
    for (const std::int64_t count : {0, 1, 3, 9, 40, 300})
      for (const std::int64_t elements : {1, 10, 32, 33, 64, 100, 1031})
        sums_.push_back({.count = count, .elements = elements});
    x_.resize(2 * kRun, 0.0f);
    std::size_t at = 32;  // what comes before is complete
    std::uint64_t seed = 1;
    for (PartialSum& sum : sums_) {
      if (at + static_cast<std::size_t>(sum.elements) > kRun && at < kRun) at = kRun;  // the second run
      sum.to = x_.data() + at;
      sum.stride = sum.elements + (seed % 2 == 0 ? 0 : 4 - sum.elements % 4);
      for (const double value : random_values(static_cast<std::size_t>(sum.count * sum.stride), seed++))
        slices_.push_back(static_cast<float>(value));
      at += static_cast<std::size_t>(sum.elements + 31) / 32 * 32;
      if (seed % 5 == 0) {  // a complete one
        for (std::size_t i = 0; i < 70; ++i) x_[at + i] = static_cast<float>(i) - 35.5f;
        at += 96;
      }
    }
    const float* slice = slices_.data();
    for (PartialSum& sum : sums_) sum.slices = slice, slice += sum.count * sum.stride;
    runs_ = {{x_.data(), kRun, 0}, {x_.data() + kRun, kRun - 17, kRun / kBlock + 3}};
    std::ranges::reverse(sums_);  // any order
    blocks_.assign(2 * kRun / kBlock + 3, 0.25f);
    notes_.assign(blocks_.size(), 2.0f);
  }
  Gradients(const Gradients& other) = delete;

  FinishArgs args() {
    return {.runs = runs_,
            .partial_sums = sums_,
            .tiny = 0.5f,
            .blocks = blocks_.data(),
            .notes = notes_.data(),
            .count = blocks_.size(),
            .sum = &sum,
            .non_finite = &state.non_finite,
            .first_non_finite = &state.first_non_finite,
            .tiny_count = &state.tiny_gradients,
            .prepare = {.state = &state, .learning_rates = &rate_, .count = 1, .sum_of_squares = &sum, .most_norm = 1},
            .arrivals = &arrivals};
  }
  std::vector<float>& x() { return x_; }
  /// Of the first slice of the array that comes last.
  float& some_slice() { return slices_[slices_.size() - static_cast<std::size_t>(sums_[0].count * sums_[0].stride)]; }
  const PartialSum& last() const { return sums_[0]; }
  std::span<const PartialSum> partial_sums() const { return sums_; }
  const std::vector<float>& blocks() const { return blocks_; }
  const std::vector<float>& notes() const { return notes_; }

  float sum = -1;
  step_state::StepState state;
  unsigned arrivals = 0;

 private:
  static constexpr std::size_t kRun = 6400;

  std::vector<PartialSum> sums_;
  std::vector<float> x_, slices_, blocks_, notes_;
  std::vector<gradient_statistics::Run> runs_;
  float rate_ = 0.125f;
};

TEST(FinishedGradients, HaveTheReferencesSumsAndStatistics) {
  Gradients expected;
  reference_finish(expected.args());
  EXPECT_EQ(expected.state.first_non_finite, -1);
  EXPECT_EQ(expected.state.learning_rate, 0.125f);
  EXPECT_LT(expected.state.gradient_scale, 1) << "clipped";
  for_each_variant(kernel_set().gradient_statistics, DType::f32, [&](const Variant& variant, Stream& stream) {
    std::vector<float> first;
    for (int repetition = 0; repetition < 2; ++repetition) {
      Gradients actual;
      variant.finish(stream, actual.args());
      finish(stream);
      for (std::size_t i = 0; i < actual.x().size(); ++i)
        ASSERT_NEAR(actual.x()[i], expected.x()[i], 300 * 300 * 0x1p-24) << i;
      EXPECT_NEAR(actual.sum, expected.sum, expected.sum * 1e-5);
      EXPECT_EQ(actual.state.tiny_gradients, expected.state.tiny_gradients);
      EXPECT_EQ(actual.state.first_non_finite, -1);
      EXPECT_EQ(actual.state.non_finite, 0);
      EXPECT_EQ(actual.state.learning_rate, 0.125f);
      EXPECT_NEAR(actual.state.gradient_scale, expected.state.gradient_scale, 1e-5 * expected.state.gradient_scale);
      EXPECT_EQ(actual.arrivals, 0u);
      if (repetition == 0) first = actual.x();
      EXPECT_EQ(actual.x(), first) << "the same bits again";
    }
  });
}

TEST(FinishedGradients, AreAddedUpAlone) {
  Gradients expected;
  reference_finish(expected.args());
  for_each_variant(kernel_set().gradient_statistics, DType::f32, [&](const Variant& variant, Stream& stream) {
    Gradients actual;
    variant.add_up(stream, actual.partial_sums());
    finish(stream);
    for (std::size_t i = 0; i < actual.x().size(); ++i)
      ASSERT_NEAR(actual.x()[i], expected.x()[i], 300 * 300 * 0x1p-24) << i;
    EXPECT_EQ(actual.sum, -1);
  });
}

TEST(FinishedGradients, ShowANonFinitePartialSum) {
  Gradients expected;
  expected.some_slice() = std::nanf("");
  reference_finish(expected.args());
  EXPECT_EQ(expected.state.non_finite, 1);
  for_each_variant(kernel_set().gradient_statistics, DType::f32, [&](const Variant& variant, Stream& stream) {
    Gradients actual;
    actual.some_slice() = std::nanf("");
    variant.finish(stream, actual.args());
    finish(stream);
    EXPECT_EQ(actual.state.non_finite, 1);
    EXPECT_EQ(actual.state.first_non_finite, expected.state.first_non_finite);
    EXPECT_EQ(actual.state.tiny_gradients, expected.state.tiny_gradients);
    EXPECT_EQ(actual.state.gradient_scale, 1) << "not clipped by a norm that is NaN";
  });
}

// What ranks find in shards of the same gradients, and one rank in all of them, must be equal. (Gradients that are added
// up alone may differ in their last bits: where a block of elements has several arrays, one order serves all of it.)
TEST(FinishedGradients, HaveTheBitsOfTheirBlocks) {
  for_each_variant(kernel_set().gradient_statistics, DType::f32, [&](const Variant& variant, Stream& stream) {
    Gradients at_once;
    variant.finish(stream, at_once.args());
    finish(stream);
    Gradients in_pieces;
    in_pieces.x() = at_once.x();
    FinishArgs args = in_pieces.args();
    for (const gradient_statistics::Run& run : args.runs)
      variant.blocks(stream, {.x = run.x,
                              .elements = run.elements,
                              .tiny = args.tiny,
                              .blocks = args.blocks + run.first_block,
                              .notes = args.notes + run.first_block});
    args.runs = {};
    args.partial_sums = {};
    variant.finish(stream, args);
    finish(stream);
    EXPECT_EQ(in_pieces.blocks(), at_once.blocks());
    EXPECT_EQ(in_pieces.notes(), at_once.notes());
    EXPECT_EQ(in_pieces.sum, at_once.sum);
    EXPECT_EQ(in_pieces.state.tiny_gradients, at_once.state.tiny_gradients);
    EXPECT_EQ(in_pieces.state.gradient_scale, at_once.state.gradient_scale);
  });
}

TEST(FinishedGradients, RejectsPartialSumsOutsideOfRunsAndOverlapping) {
  Gradients gradients;
  const FinishArgs good = gradients.args();
  EXPECT_NO_THROW(check_args(good));
  FinishArgs short_of_blocks = good;
  --short_of_blocks.count;
  EXPECT_THROW(check_args(short_of_blocks), InvalidArgument) << "of a run's blocks";
  PartialSum sum = gradients.last();
  FinishArgs args = good;
  args.partial_sums = {&sum, 1};
  sum.to += 1;
  EXPECT_THROW(check_args(args), InvalidArgument) << "not aligned";
  sum.to = gradients.x().data() + gradients.x().size();
  EXPECT_THROW(check_args(args), InvalidArgument) << "outside";
  const std::vector<PartialSum> twice(2, gradients.last());
  args.partial_sums = twice;
  EXPECT_THROW(check_args(args), InvalidArgument) << "overlapping";
}

}  // namespace
}  // namespace gradring::kernels::gradient_statistics
