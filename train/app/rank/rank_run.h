// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "train/app/rank/rank.h"
#include "train/app/rank/signal_requests.h"
#include "train/core/config/train_config.h"
#include "train/core/trainer/trainer_world.h"
#include "train/launch/workers/worker_environment.h"
#include "train/options/commands.h"
#include "train/records/metrics/console.h"
#include "train/records/metrics/summary.h"

namespace gradring::train {

/// `gradring train` as one rank of the run that `environment` describes, in phases:
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
  /// `kept` receives the Rank. To be constructed before the process has other threads, which inherit its signal mask.
  RankRun(const TrainConfig& config, const WorkerEnvironment& environment, KeptAlive& kept);

  /// Trains. A run that was asked to stop and saved a checkpoint has not failed: rank 0 prints the command that resumes
  /// it.
  ///
  /// Returns   the exit code: 0, or one that names the signal.
  /// Errors    as Rank, open_datasets, RunOutput and Trainer.
  int run();

 private:
  struct FoundStart;
  struct Built;
  struct Outputs;

  void run_phases();
  bool was_finished(FoundStart& found, Built& built) const;
  Summary train(const Rank& rank, FoundStart& found, Built& built, const Outputs& outputs);
  Summary train_and_record(const Rank& rank, FoundStart& found, Built& built);
  void close(const Summary& summary, FoundStart& found, Built& built) const;
  void finish_output(Console& out) const;

  const TrainConfig& config_;
  const WorkerEnvironment& environment_;
  const bool leads_;
  KeptAlive& kept_;
  SignalRequests requests_;
  std::filesystem::path shown_dir_;  // rank 0's run directory, as a user types it; empty until it is open
};

/// Opens device and data as a RankRun does, describes them on stdout, and returns: no other rank is needed, no file is
/// written.
void dry_run(const TrainConfig& config, const WorkerEnvironment& environment);

}  // namespace gradring::train
