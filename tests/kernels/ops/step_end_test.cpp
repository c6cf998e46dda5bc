// SPDX-License-Identifier: Apache-2.0
// adam and sgd: the last update of a step advances its state and reports it.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/ops/optimizers/optimizers.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels {
namespace {

using namespace gradring::tests;
using step_state::Report;
using step_state::StepState;

/// Weights, their gradients and moments, and what ends a step.
struct Step {
  std::vector<float> weights, gradients, m, v;
  StepState state{.learning_rate = 0.5f, .loss_scale = 8};
  std::vector<Report> ring = std::vector<Report>(3);
  std::uint32_t written = 7;
  unsigned arrivals = 0;
  float loss_sum = 2.5f;

  Step(std::size_t elements, int non_finite) : m(elements), v(elements) {
    for (const double value : random_values(elements, 1)) weights.push_back(static_cast<float>(value));
    for (const double value : random_values(elements, 2)) gradients.push_back(static_cast<float>(value));
    state.non_finite = non_finite;
  }
  StepEnd end() {
    return {.advance = {.state = &state,
                        .dynamic = true,
                        .reports = {.ring = ring.data(), .count = 3, .written = &written, .loss_sum = &loss_sum}},
            .arrivals = &arrivals};
  }
  adam::Args adam_args() {
    return {.elements = weights.size(),
            .weights = weights.data(),
            .gradients = gradients.data(),
            .m = m.data(),
            .v = v.data(),
            .state = &state};
  }
  sgd::Args sgd_args() {
    return {.elements = weights.size(), .weights = weights.data(), .gradients = gradients.data(), .state = &state};
  }
};

/// Also of a step that is skipped, and of one without weights.
template <class Table, class ArgsOf>
void expect_ends(const Table& table, ArgsOf args_of) {
  for (const std::size_t elements : {0, 1, 1023, 20001})
    for (const int non_finite : {0, 1})
      for_each_variant(table, DType::f32, [&](const auto& variant, Stream& stream) {
        Step expected(elements, non_finite), actual(elements, non_finite);
        variant.run(stream, args_of(expected));
        finish(stream);
        const StepState before = expected.state;
        step_state::reference_advance({.state = &expected.state, .dynamic = true});
        auto args = args_of(actual);
        args.end = actual.end();
        variant.run(stream, args);
        finish(stream);
        EXPECT_EQ(actual.weights, expected.weights);
        EXPECT_EQ(actual.state.applied_steps, expected.state.applied_steps);
        EXPECT_EQ(actual.state.skipped_steps, expected.state.skipped_steps);
        EXPECT_EQ(actual.state.loss_scale, expected.state.loss_scale);
        EXPECT_EQ(actual.ring[1].state.applied_steps, before.applied_steps);
        EXPECT_EQ(actual.ring[1].state.non_finite, non_finite);
        EXPECT_EQ(actual.ring[1].state.loss_scale, 8);
        EXPECT_EQ(actual.ring[1].loss_sum, 2.5f);
        EXPECT_EQ(actual.ring[0].loss_sum, 0);
        EXPECT_EQ(actual.written, 8u);
        EXPECT_EQ(actual.arrivals, 0u);
      });
}

TEST(StepEnd, AdamAdvancesAndReports) {
  expect_ends(kernel_set().adam, [](Step& step) { return step.adam_args(); });
}
TEST(StepEnd, SgdAdvancesAndReports) {
  expect_ends(kernel_set().sgd, [](Step& step) { return step.sgd_args(); });
}

TEST(StepEnd, RejectsAnotherStateAndMissingPointers) {
  Step step(1, 0), other(1, 0);
  const auto rejects = [&](auto change) {
    adam::Args args = step.adam_args();
    args.end = step.end();
    EXPECT_NO_THROW(check_args(args));
    change(args.end);
    EXPECT_THROW(check_args(args), InvalidArgument);
  };
  rejects([&](StepEnd& end) { end.advance.state = &other.state; });
  rejects([](StepEnd& end) { end.arrivals = nullptr; });
  rejects([](StepEnd& end) { end.advance.reports.written = nullptr; });
  rejects([](StepEnd& end) { end.advance.reports.loss_sum = nullptr; });
  rejects([](StepEnd& end) { end.advance.reports.count = 0; });
}

}  // namespace
}  // namespace gradring::kernels
