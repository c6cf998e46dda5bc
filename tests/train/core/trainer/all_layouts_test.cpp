// SPDX-License-Identifier: Apache-2.0
// The same training in every layout of ranks, micro-batches, ZeRO stages and activation checkpointing; and that the
// comparison finds what differs.
#include "tests/train/support/layouts.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "data/datasets/open_dataset.h"

namespace gradring::train::tests {
namespace {

constexpr Agreement kExact{.exact = true};
constexpr Agreement kFloats{};

LayoutTraining training() { return {.losses = {2, 1.5}, .gradients = {{3, 4}, {0, 0}}, .parameters_sha256 = "abc"}; }

bool agrees(const LayoutTraining& other, const Agreement& agreement) {
  return compare({.ranks = 2}, other, training(), training().parameters_sha256, agreement).agrees;
}

TEST(Layouts, AreAllCombinationsThePlainOneFirst) {
  const auto layouts = all_layouts(4, {1, 2});
  EXPECT_EQ(layouts.size(), 64u);
  EXPECT_EQ(std::set<Layout>(layouts.begin(), layouts.end()).size(), 64u);
  EXPECT_EQ(layouts.front(), (Layout{.ranks = 1, .passes = 1}));
}

TEST(Layouts, OfTheSameTrainingAgree) {
  EXPECT_TRUE(agrees(training(), kExact));
  EXPECT_TRUE(agrees(training(), kFloats));
}

TEST(Layouts, MayRoundFloatsOtherwiseAndNoMore) {
  LayoutTraining other = training();
  other.losses[1] += 0.9e-4;
  other.gradients[0][1] += 4e-5f;  // of a tensor that is 5 long
  EXPECT_TRUE(agrees(other, kFloats));
  EXPECT_FALSE(agrees(other, kExact));
  other.losses[1] += 0.2e-4;
  EXPECT_FALSE(agrees(other, kFloats)) << "a loss";
  other = training();
  other.gradients[0][1] += 6e-5f;
  EXPECT_FALSE(agrees(other, kFloats)) << "a gradient";
  other = training();
  other.gradients[1][0] = 1e-20f;
  EXPECT_FALSE(agrees(other, kFloats)) << "a gradient that was zero";
}

TEST(Layouts, DifferByWhatIsNotThere) {
  LayoutTraining other = training();
  other.losses.pop_back();
  EXPECT_FALSE(agrees(other, kFloats));
  other = training();
  other.gradients.pop_back();
  EXPECT_FALSE(agrees(other, kFloats));
  other = training();
  other.gradients.clear();
  EXPECT_FALSE(compare({.ranks = 2}, other, other, other.parameters_sha256, kExact).agrees) << "no weight was changed";
  other = training();
  other.losses[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(agrees(other, kFloats));
}

TEST(Layouts, NeedThePlainLayoutsBitsOfAllStages) {
  LayoutTraining other = training();
  other.parameters_sha256 = "abd";
  EXPECT_FALSE(agrees(other, kFloats));
  EXPECT_TRUE(compare({.ranks = 2}, other, training(), "abd", kFloats).agrees) << "ranks may round otherwise";
}

TEST(Layouts, OfAllStagesAddInTheSameOrder) {
  EXPECT_EQ(plainest({.ranks = 3, .passes = 2, .zero = 1, .recomputes = true}), (Layout{.ranks = 3, .passes = 2}));
  EXPECT_EQ(plainest({.ranks = 3, .passes = 2, .zero = 3}), (Layout{.ranks = 3, .passes = 2}));
}

TEST(Layouts, TrainAndGoOnFromEachOthersCheckpoints) {
  const auto digits = data::open_dataset("digits", data::Split::test, "");
  TrainConfig config;
  config.epochs = 1;
  config.steps = 3;
  config.global_batch = 6;
  config.reproducible = true;
  config.shard_size = 3;
  const std::vector<Layout> layouts = {{.ranks = 1, .passes = 0}, {.ranks = 2, .passes = 0, .zero = 3}};
  int heard = 0;
  const auto rows =
      compare_layouts(layouts, {.config = config, .train_set = *digits, .test_set = *digits, .save_at = 2}, kExact,
                      [&](const LayoutRow&) { ++heard; });
  EXPECT_EQ(heard, 2);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_FALSE(rows[0].resumed_equal);
  EXPECT_EQ(rows[1].resumed_equal, true);
  EXPECT_TRUE(rows[1].agrees);
  EXPECT_EQ(rows[1].parameters_sha256.size(), 64u);
}

/// Samples per step over all ranks: divisible among two ranks in whole shards.
constexpr std::int64_t kGlobalBatch = 24;
constexpr std::int64_t kShard = 3;
constexpr std::int64_t kSteps = 8;

/// Two dropouts, one of them in a segment that is recomputed.
const nn::ModelText kDropout("dropout.toml", R"(
layers = [
  { conv2d = "conv1", out = 5, kernel = 3, stride = 2 },
  { relu = "relu1" },
  { dropout = "drop1", p = 0.25 },
  { conv2d = "conv2", out = 5, kernel = 3 },
  { relu = "relu2" },
  { flatten = "flatten" },
  { dropout = "drop2" },
  { linear = "fc", out = "classes" },
]
)");

const nn::ModelText kBatchNorm("batch-norm.toml", R"(
layers = [
  { conv2d = "conv1", out = 5, kernel = 3, stride = 2, bias = false },
  { batch_norm2d = "bn1" },
  { relu = "relu1" },
  { conv2d = "conv2", out = 5, kernel = 3, padding = 1, bias = false },
  { batch_norm2d = "bn2" },
  { add = "add", inputs = ["bn2", "relu1"] },
  { relu = "relu2" },
  { flatten = "flatten" },
  { linear = "fc", out = "classes" },
]
)");

TrainConfig config_for(const nn::ModelText& model, Precision precision = Precision::fp32, bool reproducible = false) {
  TrainConfig config;
  config.model = model.name;
  config.model_text = model.text;
  config.epochs = 1;
  config.steps = kSteps;
  config.global_batch = kGlobalBatch;
  config.precision = precision;
  config.loss_scale = 0x1p29;  // in fp16 the first steps overflow in every layout
  config.reproducible = reproducible;
  if (reproducible) config.shard_size = kShard;
  return config;
}

/// The number of layouts. Each must agree with the first one, with --reproducible also after a resume.
std::size_t expect_agreement(const TrainConfig& config, const std::vector<Layout>& layouts) {
  const auto train_set = data::open_dataset("digits", data::Split::train, "");
  const auto test_set = data::open_dataset("digits", data::Split::test, "");
  const LayoutTrainingSpec spec{.config = config,
                                .train_set = *train_set,
                                .test_set = *test_set,
                                .save_at = config.reproducible ? kSteps / 2 : 0};
  const auto rows = compare_layouts(layouts, spec, {.exact = config.reproducible}, [](const LayoutRow& row) {
    EXPECT_TRUE(row.agrees) << "ranks " << row.layout.ranks << ", passes " << row.layout.passes << ", ZeRO "
                            << row.layout.zero << (row.layout.recomputes ? ", activations recomputed" : "")
                            << ": gradients differ by " << row.gradient_error << ", losses by " << row.loss_error
                            << ", equal after a resume: " << row.resumed_equal.value_or(true);
  });
  return rows.size();
}

/// The same for all layouts of up to `most_ranks` ranks.
std::size_t expect_agreement(Precision precision, bool reproducible, const std::vector<std::int64_t>& passes,
                             const nn::ModelText& model = "convnet", int most_ranks = 2) {
  return expect_agreement(config_for(model, precision, reproducible), all_layouts(most_ranks, passes));
}

TEST(AllLayouts, TrainAlikeWithSumsInFloats) { EXPECT_EQ(expect_agreement(Precision::fp32, false, {1, 2, 3}), 48u); }
TEST(AllLayouts, TrainReproduciblyInFp32) { EXPECT_EQ(expect_agreement(Precision::fp32, true, {0}), 16u); }
TEST(AllLayouts, TrainReproduciblyInFp16) { EXPECT_EQ(expect_agreement(Precision::fp16, true, {0}), 16u); }

// Also where samples are dealt in turns, where ranks have different numbers of samples, and where steps are skipped.
TEST(AllLayouts, DropTheSameWithSumsInFloats) {
  EXPECT_EQ(expect_agreement(Precision::fp32, false, {1, 3}, kDropout, 4), 64u);
}
TEST(AllLayouts, DropTheSameReproduciblyInFp32) {
  EXPECT_EQ(expect_agreement(Precision::fp32, true, {0}, kDropout, 4), 32u);
}
/// Each rank, and each pass, normalizes its own samples: other ranks or passes are another computation.
TEST(AllLayouts, OfTheSameRanksNormalizeToTheSameBits) {
  for (const int ranks : {1, 2})
    for (const std::int64_t passes : {1, 3}) {
      std::vector<Layout> layouts;
      for (const Layout& layout : all_layouts(ranks, {passes}))
        if (layout.ranks == ranks) layouts.push_back(layout);
      EXPECT_EQ(expect_agreement(config_for(kBatchNorm), layouts), 8u);
    }
}
TEST(AllLayouts, NormalizeAlikeWithSyncBatchNorm) {
  TrainConfig config = config_for(kBatchNorm);
  config.sync_batchnorm = true;
  EXPECT_EQ(expect_agreement(config, all_layouts(4, {1})), 32u);
}
TEST(AllLayouts, NormalizeReproducibly) {
  TrainConfig config = config_for(kBatchNorm, Precision::fp32, true);
  config.sync_batchnorm = true;
  EXPECT_EQ(expect_agreement(config, all_layouts(4, {0})), 32u);
}

TEST(AllLayouts, DropTheSameReproduciblyInFp16) {
  EXPECT_EQ(expect_agreement(Precision::fp16, true, {0}, kDropout, 4), 32u);
}

/// Muon needs whole matrices, of which ranks have parts.
TEST(AllLayouts, OrthogonalizeReproducibly) {
  const std::vector<Layout> layouts = {{.ranks = 1, .passes = 0},
                                       {.ranks = 2, .passes = 0},
                                       {.ranks = 2, .passes = 0, .zero = 2},
                                       {.ranks = 3, .passes = 0, .zero = 1},
                                       {.ranks = 3, .passes = 0, .zero = 3, .recomputes = true}};
  for (const auto& [precision, scale] :
       {std::pair(Precision::fp32, MuonScale::original), std::pair(Precision::fp16, MuonScale::normalize)}) {
    TrainConfig config = config_for("convnet", precision, true);
    config.learning_rate = 0.02;
    config.optimizer = {.kind = OptimizerKind::muon, .momentum = 0.9, .nesterov = true, .muon_scale = scale};
    EXPECT_EQ(expect_agreement(config, layouts), layouts.size());
  }
}

}  // namespace
}  // namespace gradring::train::tests
