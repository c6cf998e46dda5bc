// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/datasets/dataset.h"
#include "train/core/trainer/trainer.h"
#include "train/records/checkpoint/checkpoint_writer.h"

namespace gradring::tests {

/// The defaults, but for how long to train.
train::TrainConfig config_for(std::int64_t epochs, std::int64_t batch_size);

/// Keeps what a trainer reports.
class Recorder final : public train::MetricsSink {
 public:
  void event(const train::RunEvent& event) override {
    if (const auto* step = std::get_if<train::StepRecord>(&event)) steps.push_back(*step);
    if (const auto* eval = std::get_if<train::EvalRecord>(&event)) evals.push_back(*eval);
    if (const auto* times = std::get_if<train::RanksRecord>(&event)) ranks.push_back(*times);
    if (const auto* saved = std::get_if<train::CheckpointRecord>(&event)) checkpoints.push_back(*saved);
  }
  void remark(const std::string& text) override { remarks.push_back(text); }
  void rolled_back(std::int64_t step, std::int64_t epoch) override {
    std::erase_if(steps, [step](const train::StepRecord& record) { return record.step > step; });
    std::erase_if(evals, [epoch](const train::EvalRecord& record) { return record.epoch > epoch; });
    back_to.push_back(step);
  }
  std::vector<train::StepRecord> steps;
  std::vector<train::EvalRecord> evals;
  std::vector<train::RanksRecord> ranks;
  std::vector<train::CheckpointRecord> checkpoints;
  std::vector<std::string> remarks;
  std::vector<std::int64_t> back_to;  ///< steps, one for each time that training went back
};

/// Keeps checkpoints in memory, of each step the last one.
class KeptCheckpoints final : public train::CheckpointSink {
 public:
  void save(train::Checkpoint checkpoint) override {
    std::erase_if(all, [&](const train::Checkpoint& kept) { return kept.step == checkpoint.step; });
    all.push_back(std::move(checkpoint));
  }
  std::vector<std::string> take_problems() override { return {}; }
  bool is_idle(std::chrono::milliseconds) override { return true; }
  int failures() const override { return 0; }
  void finish() override {}
  /// That of a step, which must be there.
  const train::Checkpoint& of_step(std::int64_t step) const;
  std::vector<train::Checkpoint> all;
};

/// The first samples of a data set.
data::InMemoryDataset head_of(const data::Dataset& whole, std::int64_t samples);

struct TrainingRun {
  std::vector<train::Summary> summaries;  ///< in the order in which ranks ended
  Recorder rank0;
  KeptCheckpoints checkpoints;
  train::RunRequests* requests = nullptr;  ///< to rank 0
};

/// What a test puts around a rank's backend.
using DecorateBackend = std::function<std::unique_ptr<nn::Backend>(std::unique_ptr<nn::Backend>, int rank)>;

/// Trains by `world` ranks of this process on the CPU. `begin`, if given, is called on each rank before it runs.
TrainingRun train(int world, const train::TrainConfig& config, const data::Dataset& train_set,
                  const data::Dataset& test_set, const std::function<void(train::Trainer&, int rank)>& begin = {},
                  const DecorateBackend& decorate = {});
/// The same for a run that a test has made, and keeps if it ends with an error.
void train(TrainingRun& run, int world, const train::TrainConfig& config, const data::Dataset& train_set,
           const data::Dataset& test_set, const std::function<void(train::Trainer&, int rank)>& begin = {},
           const DecorateBackend& decorate = {}, const data::Dataset* validation_set = nullptr);

}  // namespace gradring::tests
