// SPDX-License-Identifier: Apache-2.0
// ZeRO: what ranks share out changes no bit of what comes out.
#include <gtest/gtest.h>

#include <cstring>
#include <ostream>

#include "data/datasets/open_dataset.h"
#include "data/loader/sampler.h"
#include "tests/nn/support/program_rig.h"
#include "tests/support/sanitizer.h"
#include "tests/train/support/rank_rig.h"

namespace gradring::tests {
namespace {

using kernels::DType;

constexpr std::int64_t kGlobalBatch = 24;  // of 1, 2, 3 or 4 ranks
constexpr int kStages = 4;

struct Trace {
  std::vector<train::StepResult> steps;
  std::vector<std::vector<float>> weights, gradients;  // after the last step
  int skipped = 0;
};

struct Case {
  const char* name;
  train::OptimizerSpec optimizer = {};
  DType precision = DType::f32;
  DType wire = DType::f32;
  float loss_scale = 0x1p28;  ///< in f16
  double clip_norm = 0;
  bool overlap = true;
  std::int64_t accumulate = 1;
  bool sync_every_pass = false;  ///< at stages 2 and 3
  bool recorded = false;
  train::BucketLimits buckets = {.first_bytes = 1, .rest_bytes = 40'000};
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

RankRig::Options options_for(const Case& c, int world, int zero) {
  RankRig::Options options;
  options.optimizer = c.optimizer;
  options.clip_norm = c.clip_norm;
  options.max_batch = kGlobalBatch / world / c.accumulate;
  options.accumulates = c.accumulate > 1;
  options.buckets = c.buckets;
  options.wire = {.dtype = c.wire};
  options.zero = zero;
  options.sync_every_pass = c.sync_every_pass;
  options.overlap = c.overlap;
  options.recorded = c.recorded;
  options.precision = c.precision;
  if (c.precision == DType::f16)  // the first steps overflow, and then the scale rises until one does again
    options.loss_scaling = {.dynamic = true, .initial = c.loss_scale, .policy = {.growth_interval = 3}};
  return options;
}

Trace train(const Case& c, int world, int zero, int steps) {
  static const auto dataset = data::open_dataset("digits", data::Split::train, "");
  Trace trace;
  run_ranks(world, [&](comm::ProcessGroup& group) {
    RankRig rig(group, *dataset, options_for(c, world, zero));
    const auto order =
        data::DistributedSampler({.samples = dataset->size(), .rank = group.rank(), .world_size = world}).order(0);
    const std::int64_t batch = kGlobalBatch / world;
    std::vector<train::StepResult> results;
    for (int step = 0; step < steps; ++step) {
      const auto begin = order.begin() + step * batch;
      results.push_back(rig.step({begin, begin + batch}, kGlobalBatch));
    }
    const auto gradients = rig.gradients(), weights = rig.weights();
    const auto all = group.all_gather_on_host(std::as_bytes(std::span(weights.front())));
    for (int rank = 1; rank < world; ++rank)
      EXPECT_EQ(
          std::memcmp(all.data(), all.data() + static_cast<std::size_t>(rank) * weights.front().size() * sizeof(float),
                      weights.front().size() * sizeof(float)),
          0)
          << "rank " << rank;
    if (group.rank() == 0) trace = {.steps = results, .weights = weights, .gradients = gradients};
  });
  for (const train::StepResult& step : trace.steps) trace.skipped += step.skipped;
  return trace;
}

void expect_same_bits(const Trace& actual, const Trace& expected) {
  for (std::size_t i = 0; i < expected.steps.size(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    EXPECT_EQ(actual.steps[i].loss, expected.steps[i].loss);
    EXPECT_EQ(actual.steps[i].loss_scale, expected.steps[i].loss_scale);
    EXPECT_EQ(actual.steps[i].skipped, expected.steps[i].skipped);
    if (!expected.steps[i].skipped) {
      EXPECT_EQ(actual.steps[i].gradient_norm, expected.steps[i].gradient_norm);
    }
  }
  EXPECT_EQ(actual.weights, expected.weights);
  if (!expected.steps.back().skipped) {
    EXPECT_EQ(actual.gradients, expected.gradients);
  }
}

class Zero : public testing::TestWithParam<std::tuple<Case, int>> {};

TEST_P(Zero, ChangesNoBit) {
  const auto& [c, world] = GetParam();
  const int steps = kSanitizer.empty() ? 20 : 2;
  const Trace whole = train(c, world, 0, steps);
  ASSERT_EQ(whole.steps.size(), static_cast<std::size_t>(steps));
  if (c.precision == DType::f16) {
    EXPECT_GT(whole.skipped, 0) << "a scale that overflows must be among them";
  }
  if (c.precision == DType::f16 && kSanitizer.empty()) {
    EXPECT_LT(whole.skipped, steps / 2);
  }
  if (kSanitizer.empty()) {
    EXPECT_LT(whole.steps.back().loss, whole.steps.front().loss) << "it must learn, or equal bits mean little";
  }
  for (int zero = 1; zero < kStages; ++zero) {
    SCOPED_TRACE("stage " + std::to_string(zero));
    expect_same_bits(train(c, world, zero, steps), whole);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, Zero,
    testing::Combine(
        testing::Values(
            Case{.name = "Adam", .optimizer = {.kind = train::OptimizerKind::adam}, .clip_norm = 0.5},
            Case{.name = "AdamWFp16",
                 .optimizer = {.kind = train::OptimizerKind::adamw, .weight_decay = 1e-2},
                 .precision = DType::f16,
                 .clip_norm = 0.5},
            Case{.name = "AdamWWithoutDecayOfBiases",
                 .optimizer = {.kind = train::OptimizerKind::adamw, .weight_decay = 1, .no_bias_decay = true}},
            Case{.name = "Groups",
                 .optimizer = {.kind = train::OptimizerKind::sgd,
                               .momentum = 0.9,
                               .groups = {{.pattern = "conv*", .kind = train::OptimizerKind::adamw},
                                          {.pattern = "fc_layers.0.*", .learning_rate = 0.1, .momentum = 0},
                                          {.pattern = "*.2.bias", .frozen = true}}},
                 .clip_norm = 0.5},
            Case{.name = "Muon",
                 .optimizer =
                     {.kind = train::OptimizerKind::muon, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1},
                 .clip_norm = 0.5},
            Case{.name = "MuonNormalizesFp16",
                 .optimizer = {.kind = train::OptimizerKind::muon,
                               .momentum = 0.6,
                               .nesterov = true,
                               .muon_scale = train::MuonScale::normalize,
                               .muon_steps = 3,
                               .ema = 0.9},
                 .precision = DType::f16,
                 .accumulate = 3,
                 .buckets = {.first_bytes = 1, .rest_bytes = 1}},
            Case{.name = "SgdMomentum",
                 .optimizer = {.kind = train::OptimizerKind::sgd, .momentum = 0.9},
                 .overlap = false},
            Case{.name = "Fp16OnTheWire",
                 .precision = DType::f16,
                 .wire = DType::f16,
                 .loss_scale = 0x1p20,
                 .clip_norm = 0.5,  // the norm shows what lies between tensors
                 .buckets = {.first_bytes = 1, .rest_bytes = 1}},
            Case{.name = "Windows",
                 .optimizer = {.kind = train::OptimizerKind::adam},
                 .clip_norm = 0.5,
                 .accumulate = 3,
                 .buckets = {.first_bytes = 1, .rest_bytes = 1}},
            Case{.name = "WindowsRecorded", .clip_norm = 0.5, .accumulate = 3, .recorded = true},
            Case{.name = "WindowsFp16",
                 .precision = DType::f16,
                 .wire = DType::f16,
                 .loss_scale = 0x1p20,
                 .clip_norm = 0.5,
                 .accumulate = 3}),
        testing::Values(1, 2, 3, 4)),
    [](const auto& test) {
      return std::string(std::get<0>(test.param).name) + "On" + std::to_string(std::get<1>(test.param));
    });

TEST(ZeroWindows, SyncedEveryPassTrainAlike) {
  const int steps = kSanitizer.empty() ? 20 : 2;
  const Case once{.name = "", .clip_norm = 0.5, .accumulate = 3};
  Case every = once;
  every.sync_every_pass = true;
  const Trace whole = train(once, 2, 0, steps), two = train(every, 2, 2, steps);
  expect_same_bits(train(every, 2, 3, steps), two);
  EXPECT_NE(two.weights, whole.weights) << "ranks first, then passes: other roundings";
  for (std::size_t i = 0; i < whole.steps.size(); ++i)
    EXPECT_NEAR(two.steps[i].loss, whole.steps[i].loss, 1e-4) << "step " << i;
  const Trace first = train(every, 2, 2, 1), expected = train(once, 2, 0, 1);
  for (std::size_t i = 0; i < expected.gradients.size(); ++i)
    EXPECT_LT(relative_error(first.gradients[i], expected.gradients[i]), 1e-5) << "gradient " << i;
}

TEST(ZeroWindows, ARankWithoutSamplesTakesPart) {
  const auto dataset = data::open_dataset("digits", data::Split::train, "");
  const auto trained = [&](int zero) {
    std::vector<std::vector<float>> result;
    run_ranks(3, [&](comm::ProcessGroup& group) {
      RankRig rig(group, *dataset, options_for({.name = "", .clip_norm = 0.5}, 3, zero));
      for (int step = 0; step < 4; ++step) {
        const bool has_none = group.rank() == step % 3;
        rig.step(has_none ? std::vector<std::int64_t>() : std::vector<std::int64_t>{step, 10 + group.rank()}, 4);
      }
      const auto weights = rig.weights();
      if (group.rank() == 0) result = weights;
    });
    return result;
  };
  const auto whole = trained(0);
  for (int zero = 1; zero < kStages; ++zero) EXPECT_EQ(trained(zero), whole) << "stage " << zero;
}

train::ReplicaBytes bytes_on_four_ranks(int zero, const Case& c) {
  static const auto dataset = data::open_dataset("digits", data::Split::train, "");
  train::ReplicaBytes bytes;
  run_ranks(4, [&](comm::ProcessGroup& group) {
    RankRig rig(group, *dataset, options_for(c, 4, zero));
    if (group.rank() == 2) bytes = rig.replica().bytes();
  });
  return bytes;
}

TEST(ZeroMemory, OfFourRanksIsAQuarterOfWhatIsSharedOut) {
  const auto f32 = [](int zero) { return bytes_on_four_ranks(zero, {.name = ""}); };
  const train::ReplicaBytes whole = f32(0), one = f32(1), two = f32(2), three = f32(3);
  EXPECT_EQ(one.optimizer, whole.optimizer / 4);
  EXPECT_EQ(one.gradients, whole.gradients);
  EXPECT_EQ(two.optimizer, whole.optimizer / 4);
  EXPECT_EQ(two.gradients, whole.gradients / 4);
  EXPECT_EQ(two.weights.whole, whole.weights.whole);
  EXPECT_EQ(three.optimizer, whole.optimizer / 4);
  EXPECT_EQ(three.gradients, whole.gradients / 4);
  EXPECT_EQ(three.weights.whole, 0u);
  EXPECT_EQ(three.weights.master, whole.weights.whole / 4);
  const Case f16{.name = "", .precision = DType::f16};
  const train::ReplicaBytes whole16 = bytes_on_four_ranks(0, f16), two16 = bytes_on_four_ranks(2, f16);
  EXPECT_EQ(two16.weights.master, whole16.weights.master / 4);
  EXPECT_EQ(two16.weights.whole, whole16.weights.whole);
}

}  // namespace
}  // namespace gradring::tests
