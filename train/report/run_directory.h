// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "train/config/train_config.h"

namespace gradring::train {

/// The run directory keeps the results of a run: config.resolved.toml, metrics.jsonl, summary.json, checkpoints/,
/// logs/rank_<N>.log.
/// (launch/run_folder.h is another thing: where processes meet while they run, and nothing of it stays.)

/// What --run-dir says, or else runs/<dataset>-<model>-<time>, in local time to the second, with a number behind it if that
/// is taken.
std::filesystem::path run_dir_for(const TrainConfig& config);

/// Looks before hours of work, or a wait for other ranks, are lost: make_run_dir would find the folder already there.
///
/// Errors    UsageError.
void check_new_run_dir(const std::filesystem::path& path);

/// That a folder was made by make_run_dir, before a run goes on in it.
///
/// Errors    UsageError.
void check_is_run_dir(const std::filesystem::path& path);

/// Takes away what make_run_dir left in a folder where its process was killed, if nothing else is there; not the folder, which
/// somebody may have made.
void clear_half_made_run_dir(const std::filesystem::path& path);
/// A folder, and no link to one, in which nothing is.
bool is_vacant(const std::filesystem::path& path);

/// Makes the run directory with config.resolved.toml and an empty logs/ in it; with --resume auto, in a vacant folder, too.
/// Nothing is left behind if that fails.
///
/// Errors    UsageError if it is there already; EnvironmentError if it cannot be made or written.
void make_run_dir(const std::filesystem::path& path, const TrainConfig& config);

/// Makes ready for a run that goes on in its directory behind `steps` steps, the last epochs of which is `epoch`: the
/// settings are written anew, the summary goes, and of the metrics what comes after.
///
/// Errors    EnvironmentError.
void continue_run_dir(const std::filesystem::path& path, const TrainConfig& config, std::int64_t steps,
                      std::int64_t epoch);

/// checkpoints/
std::filesystem::path checkpoints_of(const std::filesystem::path& run_dir);
std::filesystem::path metrics_of(const std::filesystem::path& run_dir);
/// logs/rank_<N>.log
std::filesystem::path log_file(const std::filesystem::path& run_dir, int rank);

}  // namespace gradring::train
