// SPDX-License-Identifier: Apache-2.0
// A whole training with --data-parallel: memory, checkpoints, faults, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "data/datasets/open_dataset.h"
#include "kernels/host/host_device.h"
#include "nn/backend/decorators.h"
#include "tests/data/support/message_of.h"
#include "tests/nn/support/program_rig.h"
#include "tests/train/support/rank_rig.h"
#include "train/core/config/resolve.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/memory_plan.h"
#include "train/core/trainer/trainer.h"
#include "train/options/usage_error.h"

namespace gradring::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using train::MemoryClass;

train::TrainConfig config_for(std::int64_t devices, std::int64_t steps) {
  train::TrainConfig config;
  config.epochs = 0;
  config.steps = steps;
  config.batch_size = 30;
  config.data_parallel = devices;
  return config;
}

/// Keeps the newest checkpoint.
class Newest final : public train::CheckpointSink {
 public:
  void save(train::Checkpoint checkpoint) override { kept = std::move(checkpoint); }
  std::vector<std::string> take_problems() override { return {}; }
  bool is_idle(std::chrono::milliseconds) override { return true; }
  int failures() const override { return 0; }
  void finish() override {}
  train::Checkpoint kept;
};

/// A backend whose loss fails when it runs, not when it is enqueued, from the second pass on.
class FailingBackend final : public nn::BackendDecorator {
 public:
  explicit FailingBackend(std::unique_ptr<nn::Backend> inner) : BackendDecorator(*inner), inner_(std::move(inner)) {}
  std::unique_ptr<nn::LossPlan> plan_cross_entropy(const nn::CrossEntropySpec& spec,
                                                   const nn::NodeSpec* last) override {
    return std::make_unique<Loss>(inner_->plan_cross_entropy(spec, last));
  }

 private:
  class Loss final : public nn::LossPlanDecorator {
   public:
    using LossPlanDecorator::LossPlanDecorator;
    void enqueue(kernels::Stream& stream, const nn::LossPass& pass) override {
      LossPlanDecorator::enqueue(stream, pass);
      if (++passes_ > 1) stream.enqueue([] { throw DeviceError("the second device lost its memory"); });
    }

   private:
    int passes_ = 0;
  };
  std::unique_ptr<nn::Backend> inner_;
};

struct DeviceRun {
  train::Summary summary;
  train::Checkpoint checkpoint;
  train::MemoryTable planned_further;
  std::int64_t reported = 0;  ///< steps
};

class CountSteps final : public train::MetricsSink {
 public:
  void event(const train::RunEvent& event) override { steps += std::holds_alternative<train::StepRecord>(event); }
  void remark(const std::string& /*text*/) override {}
  std::int64_t steps = 0;
};

/// Trains on one process. `last_fails`: the last device's backend is a FailingBackend.
DeviceRun train_on_devices(const train::TrainConfig& config, const train::Checkpoint* from = nullptr,
                           bool last_fails = false) {
  const auto train_set = data::open_dataset("digits", data::Split::train, "");
  const auto test_set = data::open_dataset("digits", data::Split::test, "");
  DeviceRun run;
  run_ranks(1, [&](comm::ProcessGroup& group) {
    const auto devices = static_cast<std::size_t>(config.data_parallel);
    std::vector<kernels::HostDevice> host(devices);
    std::vector<std::unique_ptr<nn::Backend>> backends;
    for (kernels::HostDevice& device : host) backends.push_back(make_backend("cpu", device));
    if (last_fails) backends.back() = std::make_unique<FailingBackend>(std::move(backends.back()));
    std::vector<train::FurtherDevice> others;
    for (std::size_t i = 1; i < devices; ++i) others.push_back({.device = host[i], .backend = *backends[i]});
    const auto kernels = kernels::kernel_set();
    CountSteps count;
    Newest checkpoints;
    {
      train::Trainer trainer(config, {.device = host[0],
                                      .kernels = kernels,
                                      .backend = *backends[0],
                                      .group = group,
                                      .train_set = *train_set,
                                      .test_set = *test_set,
                                      .metrics = count,
                                      .checkpoints = &checkpoints,
                                      .others = others});
      if (from) trainer.resume({.checkpoint = *from, .from = "the checkpoint"});
      run.summary = trainer.run();
    }
    run.checkpoint = std::move(checkpoints.kept);
    run.reported = count.steps;
    const train::MemoryPlanSpec spec = train::memory_plan_spec(config, host[0], *train_set, 1);
    const train::MemoryPlanWorld place{.device = host[0],
                                       .kernels = kernels,
                                       .backend = *backends[0],
                                       .train_set = *train_set,
                                       .evaluated = *train_set};
    run.planned_further = train::plan_further_device(spec, place, train::plan_programs(spec, place));
  });
  return run;
}

TEST(DataParallelTraining, PlansTheMemoryThatItTakes) {
  for (const auto precision : {train::Precision::fp32, train::Precision::fp16}) {
    SCOPED_TRACE(word_of(precision));
    train::TrainConfig config = config_for(3, 2);
    config.precision = precision;
    const DeviceRun run = train_on_devices(config);
    for (const MemoryClass each : train::all_memory_classes()) {
      if (each == MemoryClass::batches) continue;  // counts a few bytes of the evaluation besides
      EXPECT_EQ(run.summary.planned_memory[each], run.summary.peak_memory[each]) << name_of(each);
    }
    EXPECT_EQ(run.summary.further_device_bytes, 2 * run.planned_further.total());
    config.data_parallel = 1;
    const DeviceRun one = train_on_devices(config);
    EXPECT_EQ(one.summary.further_device_bytes, 0u);
    EXPECT_LT(run.summary.peak_memory[MemoryClass::activations], one.summary.peak_memory[MemoryClass::activations]);
    EXPECT_GT(run.summary.peak_memory[MemoryClass::gradients], one.summary.peak_memory[MemoryClass::gradients])
        << "the first device gathers";
  }
}

TEST(DataParallelTraining, ResumesBitForBitAndOnOneDevice) {
  const DeviceRun whole = train_on_devices(config_for(2, 8));
  const DeviceRun half = train_on_devices(config_for(2, 4));
  ASSERT_EQ(half.checkpoint.step, 4);
  const DeviceRun resumed = train_on_devices(config_for(2, 8), &half.checkpoint);
  EXPECT_EQ(resumed.summary.parameters_sha256, whole.summary.parameters_sha256);
  EXPECT_EQ(resumed.reported, 4);
  const DeviceRun on_one = train_on_devices(config_for(1, 8), &half.checkpoint);
  EXPECT_NEAR(on_one.summary.loss, whole.summary.loss, 1e-3);
}

TEST(DataParallelTraining, DropsOutTheSameOnAnyNumberOfDevices) {
  const auto loss_on = [](std::int64_t devices) {
    train::TrainConfig config = config_for(devices, 4);
    config.model = "dropout.toml";
    config.model_text = R"(layers = [{ flatten = "f" }, { dropout = "d" }, { linear = "fc", out = "classes" }])";
    return train_on_devices(config).summary.loss;
  };
  const double loss = loss_on(1);
  for (const std::int64_t devices : {2, 3}) EXPECT_NEAR(loss_on(devices), loss, 1e-6 * loss) << devices;
}

/// The second labels and weights of each device's part are its own.
TEST(DataParallelTraining, MixesTheSameOnAnyNumberOfDevices) {
  const auto loss_on = [](std::int64_t devices, const char* augment) {
    train::TrainConfig config = config_for(devices, 4);
    config.augment = data::parse_augmentation(augment);
    config.label_smoothing = 0.1;
    return train_on_devices(config).summary.train_loss;
  };
  const double one = loss_on(1, "mixup=1,cutmix=1");
  EXPECT_NEAR(loss_on(2, "mixup=1,cutmix=1"), one, 1e-5);
  EXPECT_NEAR(loss_on(3, "mixup=1,cutmix=1"), one, 1e-5);
  EXPECT_GT(std::abs(loss_on(1, "none") - one), 1e-3);
}

TEST(DataParallelTraining, LeavesFrozenParametersAsTheyWere) {
  for (const auto precision : {train::Precision::fp32, train::Precision::fp16}) {
    SCOPED_TRACE(word_of(precision));
    const auto config_on = [&](std::int64_t devices) {
      train::TrainConfig config = config_for(devices, 4);
      config.precision = precision;
      config.optimizer.groups = {{.pattern = "conv_layers.*", .frozen = true}, {.pattern = "*.bias", .frozen = true}};
      return config;
    };
    const DeviceRun one = train_on_devices(config_on(1)), three = train_on_devices(config_on(3));
    EXPECT_NEAR(three.summary.loss, one.summary.loss, 1e-2 * one.summary.loss);
    for (const MemoryClass each : train::all_memory_classes())
      if (each != MemoryClass::batches) {  // counts a few bytes of the evaluation besides
        EXPECT_EQ(three.summary.planned_memory[each], three.summary.peak_memory[each]) << name_of(each);
      }
    EXPECT_EQ(three.summary.further_device_bytes, 2 * three.planned_further.total());
    const std::vector<nn::Parameter> parameters = nn::parameters_of(nn::convnet({28, 28, 1}, 10));
    const auto drawn = nn::draw_torch_uniform(parameters, 0);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::string& name = parameters[i].name;
      const auto saved = std::ranges::find(three.checkpoint.model, name, &train::TensorRecord::name);
      ASSERT_NE(saved, three.checkpoint.model.end()) << name;
      const auto values = train::values_of(*saved).value();
      const bool is_frozen = name.starts_with("conv_layers.") || name.ends_with(".bias");
      EXPECT_EQ(std::equal(values.begin(), values.end(), drawn[i].begin()), is_frozen) << name;
    }
    const DeviceRun resumed = train_on_devices(config_on(3), &three.checkpoint);
    EXPECT_EQ(resumed.summary.parameters_sha256, three.summary.parameters_sha256);
  }
}

TEST(DataParallelTraining, AnErrorOnAnotherDeviceEndsTheTraining) {
  EXPECT_THAT(message_of<DeviceError>([] { train_on_devices(config_for(3, 8), nullptr, true); }),
              HasSubstr("the second device lost its memory"));
}

std::string refusal_of(train::OptionTexts options) {
  options["data-parallel"] = "2";
  return message_of<train::UsageError>([&] { train::resolve(options, {}, std::nullopt); });
}

TEST(DataParallelTraining, RejectsWhatNeedsRanks) {
  EXPECT_THAT(refusal_of({{"nprocs", "2"}}), AllOf(HasSubstr("--data-parallel 2"), HasSubstr("--nprocs 2")));
  EXPECT_THAT(refusal_of({{"zero", "1"}}), HasSubstr("--zero 1"));
  EXPECT_THAT(refusal_of({{"wire-dtype", "bf16"}}), HasSubstr("--wire-dtype bf16"));
  EXPECT_THAT(refusal_of({{"reproducible", "true"}}), HasSubstr("--reproducible"));
  EXPECT_THAT(refusal_of({{"device", "cuda:1"}}), HasSubstr("--device cuda:1"));
  EXPECT_THAT(refusal_of({{"batch-size", "1"}}), HasSubstr("raise it to at least 2"));
  EXPECT_THAT(message_of<train::UsageError>([] { train::step_sizes(config_for(2, 1), 3); }), HasSubstr("has 3 ranks"));
}

}  // namespace
}  // namespace gradring::tests
