// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/file_system.h"
#include "train/config/train_config.h"
#include "train/trainer/trainer.h"

namespace gradring::train {

/// Where a run begins. With neither, weights are drawn.
struct Start {
  std::optional<ResumePoint> resume;
  std::optional<FirstWeights> weights;
  bool in_place = false;             ///< the run goes on in a run directory that exists
  std::vector<std::string> remarks;  ///< what was passed over, and why
};

/// Whether `checkpoint` is one that the run in `run_dir` saved.
bool is_own_checkpoint(const std::filesystem::path& run_dir, const std::filesystem::path& checkpoint);

/// The head of config.resolved.toml of a run that starts from `checkpoint`, which another run saved.
std::string source_line(const std::filesystem::path& checkpoint);

/// The checkpoint that source_line recorded in `run_dir`; empty if the run did not start from one.
///
/// Errors    FileError if config.resolved.toml could not be read.
std::optional<std::filesystem::path> recorded_source(FileSystem& files, const std::filesystem::path& run_dir);

/// What --resume and --weights mean for a run in `run_dir` (nothing where its name is generated, so that it is new);
/// reads what they name, and changes nothing.
///
/// A run that started from another run's checkpoint and has saved none of its own resumes from that source: with auto,
/// and if --resume names the source again. `restarted` tells that a launcher starts the same command again; then
/// --resume of the source resumes the run from its own newest checkpoint, if it has one.
///
/// Errors    UsageError if the run directory exists and must not, or is not a run directory; CheckpointError if the
///           named or recorded checkpoint is missing or damaged, or, with auto, every checkpoint is; EnvironmentError
///           if something could not be read.
Start find_start(const TrainConfig& config, const std::optional<std::filesystem::path>& run_dir, FileSystem& files,
                 bool restarted = false);

}  // namespace gradring::train
