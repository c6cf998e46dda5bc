// SPDX-License-Identifier: Apache-2.0
#include "train/core/optim/optimizer.h"

#include <gtest/gtest.h>

#include "kernels/base/error.h"

namespace gradring::train {
namespace {

void expect_rates(const ScheduleSpec& spec, const std::vector<double>& expected) {
  const auto steps = static_cast<std::int64_t>(expected.size());
  const std::vector<float> listed = learning_rates(spec, 0.5, steps);
  for (std::int64_t step = 0; step < steps; ++step) {
    const double rate = expected[static_cast<std::size_t>(step)];
    EXPECT_NEAR(learning_rate_at(spec, 0.5, steps, step), rate, 1e-15) << word_of(spec.kind) << ", step " << step;
    EXPECT_EQ(listed[std::min(static_cast<std::size_t>(step), listed.size() - 1)],
              static_cast<float>(learning_rate_at(spec, 0.5, steps, step)));
  }
}

// The numbers are what torch.optim.lr_scheduler 1.13 gave for a rate of 0.5.
TEST(Schedule, HasPyTorchsNumbers) {
  expect_rates({.kind = ScheduleKind::step, .step_size = 3, .gamma = 0.3},
               {0.5, 0.5, 0.5, 0.15, 0.15, 0.15, 0.045, 0.045});
  expect_rates({.kind = ScheduleKind::linear, .least = 0.02}, {0.5, 0.38, 0.26, 0.14});
  expect_rates({.kind = ScheduleKind::cosine, .least = 0.02},
               {0.5, 0.48825356391083685, 0.45416407864998737, 0.4010684605501936, 0.3341640786499874, 0.26,
                0.18583592135001265, 0.11893153944980649, 0.06583592135001265, 0.03174643608916315});
  expect_rates({.kind = ScheduleKind::one_cycle},
               {0.020000000000000018, 0.26, 0.5, 0.47524231600673683, 0.40587282697488153, 0.30563101096814466,
                0.19437098903185537, 0.09412917302511849, 0.024759683993263143, 2e-06});
  expect_rates({.kind = ScheduleKind::one_cycle},
               {0.020000000000000018, 0.4902783136674793, 0.4595221881348553, 0.33634191824027254, 0.17886938786982853,
                0.0496483959466328, 2e-06});
  expect_rates({.kind = ScheduleKind::one_cycle}, {0.4058728269748815, 2e-06});
}

TEST(Schedule, RisesEvenlyBeforeAnyOther) {
  expect_rates({.warmup_steps = 4}, {0.125, 0.25, 0.375, 0.5, 0.5, 0.5});
  expect_rates({.warmup_steps = 6}, {0.5 / 6, 1.0 / 6, 0.25, 2.0 / 6, 2.5 / 6, 0.5});
  expect_rates({.kind = ScheduleKind::step, .warmup_steps = 2, .step_size = 2, .gamma = 0.5},
               {0.25, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125});
  expect_rates({.kind = ScheduleKind::cosine, .warmup_steps = 1}, {0.5, 0.5, 0.25});
}

TEST(Schedule, EndsForAGroupAfterItsEpochs) {
  const std::vector<ParameterGroup> groups = {{}, {.learning_rate = 8, .epochs = 1}, {.epochs = 9}};
  const std::vector<float> rates =
      learning_rates(groups, {.kind = ScheduleKind::linear}, 0.5, {.total = 4, .of_epoch = 2});
  EXPECT_EQ(rates, (std::vector<float>{0.5, 0.375, 0.25, 0.125, 8, 4, 0, 0, 0.5, 0.375, 0.25, 0.125}));
  const std::vector<float> constant = learning_rates(groups, {}, 0.5, {.total = 4, .of_epoch = 2});
  EXPECT_EQ(constant, (std::vector<float>{0.5, 0.5, 0.5, 8, 8, 0, 0.5, 0.5, 0.5}));
  EXPECT_EQ(learning_rate_at(groups[1], {}, 0.5, {.total = 4, .of_epoch = 2}, 1), 8);
  EXPECT_EQ(learning_rate_at(groups[1], {}, 0.5, {.total = 4, .of_epoch = 2}, 2), 0);
}

TEST(Schedule, RejectsAGroupWithTooManySteps) {
  const std::vector<ParameterGroup> groups = {{.epochs = 1e8}};
  EXPECT_THROW(learning_rates(groups, {}, 0.5, {.total = std::int64_t{1} << 40, .of_epoch = 1000}), InvalidArgument);
}

TEST(Schedule, ListsOneRateWhereItNeverChanges) {
  EXPECT_EQ(learning_rates({}, 0.25, 1'000'000'000'000), std::vector<float>{0.25f});
  EXPECT_EQ(learning_rates({.warmup_steps = 1}, 0.25, 3), (std::vector<float>{0.25f, 0.25f}));
}

TEST(Schedule, RejectsWhatMakesNoSense) {
  EXPECT_THROW(parse_choice<ScheduleKind>("schedule", "polynomial"), InvalidArgument);
  EXPECT_THROW(learning_rates({.kind = ScheduleKind::step}, 1, 3), InvalidArgument);
  EXPECT_THROW(learning_rates({.warmup_steps = 4}, 1, 3), InvalidArgument);
  EXPECT_THROW(learning_rates({.kind = ScheduleKind::cosine}, 1, std::int64_t{1} << 40), InvalidArgument);
}

}  // namespace
}  // namespace gradring::train
