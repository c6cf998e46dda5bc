// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/core/setup/start.h"
#include "train/options/commands.h"
#include "train/records/checkpoint/file_system.h"

namespace gradring::train {

/// The checkpoint that a command reads: its first word, or --checkpoint.
struct CheckpointChoice {
  std::string path;   ///< --checkpoint; empty: the first word
  bool best = false;  ///< of a run directory, the best instead of the newest
};

/// --checkpoint and --best.
std::vector<Option> checkpoint_options(CheckpointChoice& choice);

/// Takes the first of `words` as the path if --checkpoint is missing.
///
/// Errors    UsageError with `usage`, "gradring eval RUN", if there is neither.
void take_path(CheckpointChoice& choice, Words& words, std::string_view usage);

/// Reads it, and prints remarks on standard error.
///
/// Errors    as named_tensors and best_tensors.
NamedTensors read_choice(FileSystem& files, const CheckpointChoice& choice);

/// "runs/a/checkpoints/step-40 (newest of runs/a)"
std::string source_text(const NamedTensors& tensors);

}  // namespace gradring::train
