// SPDX-License-Identifier: Apache-2.0
#include "tests/train/support/training_run.h"

#include <algorithm>
#include <mutex>

#include "kernels/base/error.h"
#include "tests/nn/support/program_rig.h"
#include "tests/train/support/rank_rig.h"

namespace gradring::tests {
namespace {

using ReadNewest = decltype(train::TrainerWorld::newest_checkpoint);

}  // namespace

train::TrainConfig config_for(std::int64_t epochs, std::int64_t batch_size) {
  train::TrainConfig config;
  config.epochs = epochs;
  config.batch_size = batch_size;
  return config;
}

const train::Checkpoint& KeptCheckpoints::of_step(std::int64_t step) const {
  const auto found = std::ranges::find(all, step, &train::Checkpoint::step);
  check(found != all.end(), "there is no checkpoint of step " + std::to_string(step));
  return *found;
}

data::InMemoryDataset head_of(const data::Dataset& whole, std::int64_t samples) {
  data::InMemoryDataset::Contents contents{.name = std::string(whole.name()),
                                           .shape = whole.shape(),
                                           .classes = whole.classes(),
                                           .pixels = {},
                                           .labels = {}};
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto pixels = whole.pixels(i);
    contents.pixels.insert(contents.pixels.end(), pixels.begin(), pixels.end());
    contents.labels.push_back(whole.label(i));
  }
  return data::InMemoryDataset(std::move(contents));
}

TrainingRun train(int world, const train::TrainConfig& config, const data::Dataset& train_set,
                  const data::Dataset& test_set, const std::function<void(train::Trainer&, int rank)>& begin,
                  const DecorateBackend& decorate) {
  TrainingRun run;
  train(run, world, config, train_set, test_set, begin, decorate);
  return run;
}

void train(TrainingRun& run, int world, const train::TrainConfig& config, const data::Dataset& train_set,
           const data::Dataset& test_set, const std::function<void(train::Trainer&, int rank)>& begin,
           const DecorateBackend& decorate, const data::Dataset* validation_set) {
  std::mutex mutex;
  run_ranks(world, [&](comm::ProcessGroup& group) {
    kernels::HostDevice device;
    auto backend = make_backend("cpu", device);
    if (decorate) backend = decorate(std::move(backend), group.rank());
    const auto newest = [&run](std::vector<std::string>&) -> std::optional<train::ResumePoint> {
      if (run.checkpoints.all.empty()) return std::nullopt;
      const train::Checkpoint& last = run.checkpoints.all.back();
      return train::ResumePoint{.checkpoint = last, .from = "step-" + std::to_string(last.step)};
    };
    const auto kernels = kernels::kernel_set();
    Recorder others;
    train::Trainer trainer(config, {.device = device,
                                    .kernels = kernels,
                                    .backend = *backend,
                                    .group = group,
                                    .train_set = train_set,
                                    .test_set = test_set,
                                    .validation_set = validation_set,
                                    .metrics = group.rank() == 0 ? run.rank0 : others,
                                    .checkpoints = group.rank() == 0 ? &run.checkpoints : nullptr,
                                    .requests = group.rank() == 0 ? run.requests : nullptr,
                                    .newest_checkpoint = group.rank() == 0 ? ReadNewest(newest) : nullptr});
    if (begin) begin(trainer, group.rank());
    const train::Summary summary = trainer.run();
    const std::lock_guard lock(mutex);
    run.summaries.push_back(summary);
  });
}

}  // namespace gradring::tests
