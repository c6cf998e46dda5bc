// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "train/app/rank/rank.h"
#include "train/app/rank/signal_requests.h"
#include "train/core/config/train_config.h"
#include "train/core/setup/datasets.h"
#include "train/core/trainer/trainer_world.h"
#include "train/launch/workers/worker_environment.h"
#include "train/options/commands.h"
#include "train/records/metrics/console.h"
#include "train/records/metrics/metrics.h"
#include "train/records/metrics/summary.h"

namespace gradring::train {

/// What a run takes from the program that it is part of. The defaults are those of `gradring train`.
struct RunDependencies {
  std::function<Datasets(const TrainConfig&)> open_data = open_datasets;
  std::function<void()> before_join = [] {};  ///< called once this rank has all that it needs without the others
  /// Makes a further sink for rank 0, which gets the remarks, too: with --progress none stderr does not. Empty: none.
  std::function<std::unique_ptr<MetricsSink>()> observer = {};
  bool takes_signals = true;  ///< SignalRequests
};

/// Training as one rank of the run that `environment` describes, in phases:
///
///   Rank         opens the devices, and connects the ranks
///   FoundStart   finds the checkpoint to start from, and opens the data
///   Built        connects the ranks, checks that they agree, constructs the trainer, and brings it to its start
///   Outputs      creates the run directory; rank 0 prints to stdout, every rank writes a log
///   train, close
///
/// Each phase takes what the ones before returned, so their order and what outlives what are those of the types. If the
/// run had already finished, rank 0 reports it after the phase Built, and no file changes.
class RankRun {
 public:
  /// `kept` receives the Rank. If it takes signals, to be constructed before the process has other threads, which
  /// inherit its signal mask.
  RankRun(const TrainConfig& config, const WorkerEnvironment& environment, KeptAlive& kept,
          RunDependencies dependencies = {});

  /// Trains, for `gradring train`. A run that was asked to stop and saved a checkpoint has not failed: rank 0 prints the
  /// command that resumes it.
  ///
  /// Returns   the exit code: 0, or one that names the signal.
  /// Errors    as train.
  int run();

  /// Trains. The same summary on every rank.
  ///
  /// Errors    as Rank, open_datasets, RunOutput and Trainer, which throws Preempted.
  Summary train();

  /// Rank 0's run directory, as a user types it, and on other ranks where they write their logs; empty until it is open.
  const std::filesystem::path& run_dir() const { return shown_dir_; }

 private:
  struct FoundStart;
  struct Built;
  struct Outputs;

  std::optional<Summary> finished_before(FoundStart& found, Built& built);
  Summary train_or_report(const Rank& rank, FoundStart& found, Built& built, const Outputs& outputs);
  Summary train_and_record(const Rank& rank, FoundStart& found, Built& built);
  void close(const Summary& summary, FoundStart& found, Built& built) const;
  void finish_output(Console& out) const;
  bool shows_remarks() const;

  TrainConfig config_;
  const WorkerEnvironment& environment_;
  const bool leads_;
  KeptAlive& kept_;
  const RunDependencies dependencies_;
  std::optional<SignalRequests> requests_;
  std::filesystem::path shown_dir_;
};

/// Opens device and data as a RankRun does, describes them on stdout, and returns: no other rank is needed, no file is
/// written.
void dry_run(const TrainConfig& config, const WorkerEnvironment& environment);

}  // namespace gradring::train
