// SPDX-License-Identifier: Apache-2.0
// What is planned before a run, beside what the run counts.
#include "train/core/trainer/memory_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <ostream>

#include "data/datasets/dataset.h"
#include "tests/nn/support/program_rig.h"
#include "tests/train/support/batch_norm_steps.h"
#include "tests/train/support/rank_rig.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/trainer.h"

namespace gradring::tests {
namespace {

using train::MemoryClass;
using train::MemoryTable;

struct Case {
  std::string name;
  int world = 1;
  train::TrainConfig config;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

train::TrainConfig config_with(const std::function<void(train::TrainConfig&)>& change) {
  train::TrainConfig config;
  config.steps = 2;
  config.epochs = 1;
  config.batch_size = 6;
  change(config);
  return config;
}

std::vector<Case> cases() {
  using Config = train::TrainConfig;
  const nn::Checkpointing automatic{.kind = nn::Checkpointing::Kind::automatic};
  const auto normalize = [](Config& c) {
    c.model = "batch-norm.toml", c.model_text = kBatchNormModel.text;
    c.sync_batchnorm = true;
  };
  const auto frozen = [](Config& c) {
    c.model = "frozen.toml";
    c.model_text =
        "layers = [{ conv2d = 'conv1', out = 64, kernel = 3, frozen = ['weight', 'bias'] }, { relu = 'relu1' },"
        " { conv2d = 'conv2', out = 64, kernel = 3, frozen = ['weight'] }, { relu = 'relu2' },"
        " { flatten = 'flatten' }, { linear = 'fc', out = 'classes' }]";
  };
  const train::OptimizerSpec muon{
      .kind = train::OptimizerKind::muon, .momentum = 0.9, .muon_scale = train::MuonScale::normalize};
  return {
      {"Plain", 1, config_with([](Config&) {})},
      {"ThreeRanks", 3, config_with([](Config&) {})},
      {"Fp16Windows", 1, config_with([](Config& c) { c.precision = train::Precision::fp16, c.accumulate = 3; })},
      {"Bf16Wire", 2, config_with([](Config& c) { c.precision = c.wire_dtype = train::Precision::bf16; })},
      {"Zero1", 2, config_with([](Config& c) { c.zero = 1; })},
      {"Zero2Windows", 3, config_with([](Config& c) { c.zero = 2, c.accumulate = 2; })},
      {"Zero3WindowsSyncedEveryPass", 2,
       config_with([](Config& c) { c.zero = 3, c.accumulate = 2, c.sync_every_pass = true; })},
      {"Zero3Fp16", 4, config_with([](Config& c) { c.zero = 3, c.precision = train::Precision::fp16; })},
      {"Reproducible", 2, config_with([](Config& c) { c.reproducible = true; })},
      {"ReproducibleZero3", 3, config_with([](Config& c) { c.reproducible = true, c.zero = 3; })},
      {"Sgd", 1, config_with([](Config& c) { c.optimizer.kind = train::OptimizerKind::sgd; })},
      {"Momentum", 1,
       config_with([](Config& c) { c.optimizer = {.kind = train::OptimizerKind::sgd, .momentum = 0.9}; })},
      {"Muon", 1, config_with([&](Config& c) { c.optimizer = muon; })},
      {"MuonZero", 3, config_with([&](Config& c) { c.optimizer = muon, c.zero = 2; })},
      {"Averaging", 1, config_with([](Config& c) { c.optimizer.ema = 0.9; })},
      {"AveragingFp16", 2,
       config_with([](Config& c) { c.optimizer.ema = 0.9, c.precision = train::Precision::fp16, c.zero = 1; })},
      {"Resident", 1, config_with([](Config& c) { c.resident = train::Resident::on; })},
      {"Mixtures", 1, config_with([](Config& c) { c.augment.mixup = 200; })},
      {"ResidentMixtures", 1,
       config_with([](Config& c) { c.resident = train::Resident::on, c.augment.mixup = c.augment.cutmix = 1000; })},
      {"Deep", 1, config_with([](Config& c) { c.model = "convnet-deep"; })},
      {"Frozen", 1, config_with(frozen)},
      {"FrozenZero3Fp16", 2,
       config_with([&](Config& c) { frozen(c), c.zero = 3, c.precision = train::Precision::fp16; })},
      {"DeepCheckpointed", 2, config_with([&](Config& c) { c.model = "convnet-deep", c.checkpointing = automatic; })},
      {"SyncBatchNorm", 2, config_with([&](Config& c) { normalize(c); })},
      {"ReproducibleBatchNorm", 3, config_with([&](Config& c) {
         normalize(c);
         c.reproducible = true, c.global_batch = 24, c.shard_size = 2;
       })},
  };
}

struct Tables {
  MemoryTable planned;
  train::Summary summary;
};

/// Plans for rank 0 by itself, and trains for two steps.
Tables tables_of(const Case& c) {
  const auto dataset = golden_images();
  Tables tables;
  std::mutex mutex;
  run_ranks(c.world, [&](comm::ProcessGroup& group) {
    kernels::HostDevice device;
    const auto backend = make_backend("cpu", device);
    const auto kernels = kernels::kernel_set();
    train::MetricsFan nobody;
    const train::Summary summary = train::Trainer(c.config, {.device = device,
                                                             .kernels = kernels,
                                                             .backend = *backend,
                                                             .group = group,
                                                             .train_set = *dataset,
                                                             .test_set = *dataset,
                                                             .metrics = nobody})
                                       .run();
    if (group.rank() != 0) return;
    const train::MemoryPlanSpec spec = train::memory_plan_spec(c.config, device, *dataset, c.world);
    const train::MemoryPlanWorld place{
        .device = device, .kernels = kernels, .backend = *backend, .train_set = *dataset, .evaluated = *dataset};
    const std::lock_guard lock(mutex);
    tables = {train::plan_memory(spec, place, train::plan_programs(spec, place)), summary};
  });
  return tables;
}

class MemoryPlanOf : public testing::TestWithParam<Case> {};

TEST_P(MemoryPlanOf, MeetsTheCountOfTheRunInEveryClass) {
  const Tables tables = tables_of(GetParam());
  for (const MemoryClass each : train::all_memory_classes()) {
    const auto planned = static_cast<double>(tables.planned[each]);
    const auto peak = static_cast<double>(tables.summary.peak_memory[each]);
    EXPECT_LE(std::abs(planned - peak), 0.05 * peak)
        << name_of(each) << ": planned " << planned << ", counted " << peak;
  }
  EXPECT_EQ(tables.summary.planned_memory, tables.planned) << "the run and the command plan alike";
}

INSTANTIATE_TEST_SUITE_P(Layouts, MemoryPlanOf, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

/// Planned bytes of one class, of a training that differs from the plain one by `change`.
std::size_t planned(MemoryClass memory_class, const std::function<void(train::TrainConfig&)>& change, int world = 1) {
  const auto dataset = golden_images();
  kernels::HostDevice device;
  const auto backend = make_backend("cpu", device);
  const auto kernels = kernels::kernel_set();
  const auto spec = train::memory_plan_spec(config_with(change), device, *dataset, world);
  const train::MemoryPlanWorld place{
      .device = device, .kernels = kernels, .backend = *backend, .train_set = *dataset, .evaluated = *dataset};
  return train::plan_memory(spec, place, train::plan_programs(spec, place))[memory_class];
}

TEST(MemoryPlan, CountsWhatIsWellKnown) {
  const auto plain = [](train::TrainConfig&) {};
  const std::size_t weights = planned(MemoryClass::master, plain);
  EXPECT_GE(weights, 431'242 * sizeof(float));
  EXPECT_LE(weights, 431'242 * sizeof(float) * 101 / 100);  // padding
  EXPECT_EQ(planned(MemoryClass::gradients, plain), weights);
  EXPECT_EQ(planned(MemoryClass::optimizer, plain), 2 * weights);
  EXPECT_EQ(planned(MemoryClass::parameters, plain), 0u) << "layers read the weights that are trained";
  EXPECT_EQ(planned(MemoryClass::buckets, plain), 0u);
  const auto fp16 = [](train::TrainConfig& c) {
    c.precision = train::Precision::fp16, c.wire_dtype = train::Precision::fp16, c.accumulate = 2;
  };
  EXPECT_EQ(planned(MemoryClass::parameters, fp16), weights / 2);
  EXPECT_EQ(planned(MemoryClass::buckets, fp16), weights / 2);
  EXPECT_EQ(planned(MemoryClass::gradients, fp16), 2 * weights);
  EXPECT_EQ(
      planned(MemoryClass::optimizer, [](train::TrainConfig& c) { c.optimizer.kind = train::OptimizerKind::sgd; }), 0u);
}

TEST(MemoryPlan, SumsOfPassesTakeAnArenaUnlessRanksSyncInEveryPass) {
  const auto gradients = [](int zero, int accumulate, bool sync_every_pass, bool reproducible) {
    return planned(
        MemoryClass::gradients,
        [=](train::TrainConfig& c) {
          c.zero = zero, c.sync_every_pass = sync_every_pass, c.reproducible = reproducible;
          if (reproducible)
            c.shard_size = 6, c.global_batch = 12 * accumulate;
          else
            c.accumulate = accumulate;
        },
        2);
  };
  const std::size_t arena = gradients(0, 1, false, false);
  EXPECT_EQ(gradients(0, 3, false, false), 2 * arena);
  for (const int zero : {2, 3}) {
    EXPECT_EQ(gradients(zero, 3, false, false), gradients(zero, 1, false, false) + arena) << "stage " << zero;
    EXPECT_EQ(gradients(zero, 3, true, false), gradients(zero, 1, false, false)) << "stage " << zero;
    EXPECT_EQ(gradients(zero, 3, false, true), gradients(zero, 1, false, true)) << "stage " << zero;
  }
}

TEST(MemoryPlan, SynchronizedStatisticsTakeRowsOfEachRank) {
  const auto statistics = [](int ranks) {
    const auto step = [ranks](bool syncs) {
      return planned(
          MemoryClass::step, [syncs](train::TrainConfig& c) { c.model = "resnet18-cifar", c.sync_batchnorm = syncs; },
          ranks);
    };
    return step(true) - step(false);
  };
  EXPECT_GT(statistics(1), 0u);
  EXPECT_GT(statistics(4), 3 * statistics(1));  // rows are aligned together
}

TEST(MemoryPlan, ManyRanksPadTheirArenas) {
  const auto plain = [](train::TrainConfig&) {};
  EXPECT_GT(planned(MemoryClass::master, plain, 1000), planned(MemoryClass::master, plain, 1));
}

}  // namespace
}  // namespace gradring::tests
