// SPDX-License-Identifier: Apache-2.0
#include <gradring/training.h>

#include <memory>
#include <utility>

#include "kernels/runtime/cpu_level.h"
#include "train/app/api/api_call.h"
#include "train/app/api/arguments.h"
#include "train/app/api/thread_ranks.h"
#include "train/app/rank/rank_run.h"
#include "train/core/setup/datasets.h"
#include "train/core/setup/run_directory.h"
#include "train/launch/workers/worker_environment.h"
#include "train/records/checkpoint/step_folders.h"
#include "train/records/metrics/metrics.h"

namespace gradring::train::api {
namespace {

StepReport report_of(const StepRecord& record) {
  return {.step = record.step,
          .epoch = record.epoch,
          .loss = record.loss,
          .learning_rate = record.learning_rate,
          .gradient_norm = record.gradient_norm,
          .samples = record.samples,
          .seconds = record.duration.count(),
          .skipped = record.skipped};
}

EvaluationReport report_of(const EvalRecord& record) {
  return {.step = record.step,
          .epoch = record.epoch,
          .ends_epoch = record.ends_epoch,
          .on_validation_set = record.split == kValidationSplit,
          .accuracy = record.accuracy,
          .loss = record.loss,
          .samples = record.samples};
}

/// Calls the functions of an Observer, which must outlive it.
class ObserverSink final : public MetricsSink {
 public:
  explicit ObserverSink(const Observer& observer) : observer_(observer) {}

  void event(const RunEvent& event) override {
    if (const auto* step = std::get_if<StepRecord>(&event); step && observer_.step)
      run_callers_code([&] { observer_.step(report_of(*step)); });
    if (const auto* evaluation = std::get_if<EvalRecord>(&event); evaluation && observer_.evaluation)
      run_callers_code([&] { observer_.evaluation(report_of(*evaluation)); });
  }
  void remark(const std::string& text) override {
    if (observer_.remark) run_callers_code([&] { observer_.remark(text); });
  }

 private:
  const Observer& observer_;
};

/// What all ranks of this process train.
struct Training {
  TrainConfig config;
  std::shared_ptr<const data::Dataset> train_set;
  std::shared_ptr<const data::Dataset> test_set;
  const Observer& observer;

  RunDependencies dependencies(std::function<void()> join, bool takes_signals) const {
    return {.open_data = [this](const TrainConfig& used) { return make_datasets(used, train_set, test_set); },
            .before_join = std::move(join),
            .observer = [this] { return std::make_unique<ObserverSink>(observer); },
            .takes_signals = takes_signals};
  }
};

Result result_of(const Summary& summary, const WorkerEnvironment& environment, const std::filesystem::path& run_dir) {
  return {.accuracy = summary.accuracy,
          .loss = summary.loss,
          .train_loss = summary.train_loss,
          .steps = summary.steps,
          .seconds = summary.seconds,
          .samples_per_second = summary.samples_per_second,
          .ranks = environment.world_size,
          .rank = environment.rank,
          .run_dir = run_dir,
          .checkpoint = checkpoints_of(run_dir) / step_folder_name(summary.steps),
          .weights_sha256 = summary.parameters_sha256};
}

/// Trains as the rank of `environment`.
Result run_rank(const Training& training, const WorkerEnvironment& environment, KeptAlive& kept,
                const std::function<void()>& join) {
  RankRun run(training.config, environment, kept, training.dependencies(join, environment.is_launched()));
  const Summary summary = run.train();
  return result_of(summary, environment, run.run_dir());
}

/// As one rank of a launched run. The launcher gets the error before other ranks notice it.
Result run_launched(const Training& training, const WorkerEnvironment& environment) {
  KeptAlive kept;
  try {
    return run_rank(training, environment, kept, [] {});
  } catch (...) {
    leave_for_launcher(failure_of(std::current_exception()).message);
    throw;
  }
}

Result run(Training& training) {
  const auto environment = WorkerEnvironment::from_environment(system_variable);
  const auto ranks = static_cast<int>(std::exchange(training.config.nprocs, 1));
  if (environment.is_launched()) return run_launched(training, environment);
  Result result;
  run_ranks_as_threads(ranks, [&](const WorkerEnvironment& own, KeptAlive& kept, const std::function<void()>& join) {
    const Result found = run_rank(training, own, kept, join);
    if (own.rank == 0) result = found;
  });
  return result;
}

}  // namespace
}  // namespace gradring::train::api

namespace gradring {
inline namespace v1 {

Result fit(const Model& model, const Dataset& train_set, const Dataset& test_set, const Options& options,
           const Observer& observer) {
  using namespace train::api;
  Result result;
  run_api_call([&] {
    kernels::cpu_level();  // fails before any code of a level runs
    const auto samples = copy_of(train_set);
    Training training{.config = config_of(options, model, *samples),
                      .train_set = samples,
                      .test_set = copy_of(test_set),
                      .observer = observer};
    result = train::api::run(training);
  });
  return result;
}

}  // namespace v1
}  // namespace gradring
