// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <filesystem>
#include <string>

#include "train/config/train_config.h"
#include "train/report/console.h"
#include "train/report/summary.h"
#include "train/setup/compute.h"
#include "train/trainer/training_progress.h"

namespace gradring::train {

/// What is trained, by how many ranks, and on what.
void print_start(Console& out, const TrainConfig& config, const Compute& compute, int ranks);

/// The figures of a run, for a person.
void print_result(Console& out, const Summary& summary, const std::filesystem::path& run_dir);

/// That a run had finished before, so that nothing was trained, and its figures. `progress` is the style (--progress).
void print_finished(Console& out, const Summary& summary, const std::filesystem::path& run_dir,
                    const std::string& progress);

/// The outcome of a run that ended with `error`.
Outcome outcome_of(const std::exception& error);

/// What summary.json says of a run of `world_size` ranks that ended with `error` after `made`; `resolved` is its config with
/// what `auto` came to.
UnfinishedRun unfinished_run(const std::exception& error, const TrainingProgress& made, const TrainConfig& resolved,
                             int world_size);

}  // namespace gradring::train
