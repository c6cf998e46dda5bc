// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/tally/tally.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::tally {
namespace {

using namespace gradring::tests;

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Totals {
  double loss = 0;
  std::vector<std::int64_t> counts;
  bool operator==(const Totals&) const = default;
};

struct Batch {
  TypedArray logits;
  std::vector<std::int32_t> labels;
  float loss;
  std::int64_t classes;

  void add_to(Totals& totals, const Variant& variant, Stream& stream) const { variant.run(stream, args(totals)); }
  Args args(Totals& totals) const {
    return {.dtype = logits.dtype(),
            .rows = std::ssize(labels),
            .classes = classes,
            .logits = logits.data(),
            .labels = labels.data(),
            .loss = &loss,
            .loss_sum = &totals.loss,
            .counts = totals.counts.data()};
  }
};

Totals nothing(std::int64_t classes) {
  return {.counts = std::vector<std::int64_t>(static_cast<std::size_t>(counts_of(classes)))};
}

/// Logits of few values, so that many are equal; some rows with a NaN or an infinity, and some labels of no class.
Batch awkward_batch(DType dtype, std::int64_t rows, std::int64_t classes, std::uint64_t seed) {
  const auto size = static_cast<std::size_t>(rows * classes);
  std::vector<double> logits;
  for (const double value : random_values(size, seed, 0, 6)) {
    logits.push_back(std::floor(value));
    if (value < 0.02) logits.back() = kNaN;
    if (value > 5.98) logits.back() = std::numeric_limits<double>::infinity();
  }
  std::vector<std::int32_t> labels;
  for (const double value : random_values(static_cast<std::size_t>(rows), seed + 1, -1, static_cast<double>(classes)))
    labels.push_back(static_cast<std::int32_t>(std::floor(value)));
  return {TypedArray(dtype, logits), labels, 0.1f * static_cast<float>(seed), classes};
}

TEST(Tally, AddsBatchesAsTheReferenceDoes) {
  for (const DType dtype : kTypes)
    for (const std::int64_t rows : {0, 1, 31, 250, 1023})
      for (const std::int64_t classes : {1, 5, 6, 10, 103}) {
        SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(classes) + " classes");
        const Batch first = awkward_batch(dtype, rows, classes, 3), second = awkward_batch(dtype, rows, classes, 7);
        Totals expected = nothing(classes);
        reference_run(first.args(expected));
        reference_run(second.args(expected));
        for_each_variant(kernel_set().tally, dtype, [&](const Variant& variant, Stream& stream) {
          Totals totals = nothing(classes);
          first.add_to(totals, variant, stream);
          second.add_to(totals, variant, stream);
          finish(stream);
          EXPECT_EQ(totals, expected);
        });
      }
}

TEST(Tally, CountsByTheFirstMaximumAndTheFirstFive) {
  const std::vector<double> logits = {0, 3,    3, 1, 2, 0, 0,   // 1 is the first maximum
                                      9, 8,    7, 6, 5, 5, 4,   // five come before 5
                                      9, 8,    7, 6, 5, 5, 4,   // four come before 4
                                      0, kNaN, 3, 1, 2, 0, 0};  // no prediction
  const Batch batch{TypedArray(DType::f32, logits), {1, 5, 4, 2}, 2.5f, 7};
  for_each_variant(kernel_set().tally, DType::f32, [&](const Variant& variant, Stream& stream) {
    Totals totals = nothing(7);
    batch.add_to(totals, variant, stream);
    finish(stream);
    EXPECT_EQ(totals.loss, 2.5);
    EXPECT_EQ(totals.counts, (std::vector<std::int64_t>{2,                                               // in the top
                                                        0, 2, 0,                                         // class 0
                                                        1, 1, 1,                                         // class 1
                                                        1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0}));  // 2 to 6
  });
}

TEST(Tally, AddsLossesInDouble) {
  Batch batch = awkward_batch(DType::f32, 1, 3, 2);
  batch.loss = 0x1p-30f;
  for_each_variant(kernel_set().tally, DType::f32, [&](const Variant& variant, Stream& stream) {
    Totals totals = nothing(3);
    totals.loss = 1;
    batch.add_to(totals, variant, stream);
    finish(stream);
    EXPECT_EQ(totals.loss, 1 + 0x1p-30);
  });
}

TEST(Tally, RejectsWhatBreaksTheContract) {
  const Batch batch = awkward_batch(DType::f32, 2, 3, 1);
  Totals totals = nothing(3);
  const auto rejects = [&](auto change) {
    Args args = batch.args(totals);
    change(args);
    EXPECT_THROW(check_args(args), InvalidArgument);
  };
  rejects([](Args& args) { args.dtype = DType::i32; });
  rejects([](Args& args) { args.rows = -1; });
  rejects([](Args& args) { args.classes = 0; });
  rejects([](Args& args) { args.logits = nullptr; });
  rejects([](Args& args) { args.labels = nullptr; });
  rejects([](Args& args) { args.loss = nullptr; });
  rejects([](Args& args) { args.loss_sum = nullptr; });
  rejects([](Args& args) { args.counts = nullptr; });
}

}  // namespace
}  // namespace gradring::kernels::tally
