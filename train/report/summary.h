// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "train/memory/memory_table.h"

namespace gradring::train {

/// How a run ended: "outcome" in summary.json.
enum class Outcome : std::uint8_t {
  finished,     ///< all steps and the evaluation after them
  interrupted,  ///< stopped by a signal, after a checkpoint; --resume auto continues it
  diverged,     ///< a loss or gradient was not finite
  failed,       ///< any other error: a lost rank, a full disk
};

/// "finished", "interrupted", "diverged", "failed".
std::string_view name_of(Outcome outcome);

/// summary.json of a run that finished.
struct Summary {
  double accuracy = 0;                   ///< on the test set, 0..1, over all ranks
  double loss = 0;                       ///< on the test set, mean
  std::optional<double> ema_accuracy{};  ///< the same of the averaged weights, where there are any
  double train_loss = 0;                 ///< mean over the samples of the last epoch, each before its step's update
  std::int64_t steps = 0;
  double seconds = 0;             ///< training only, without evaluation and start-up
  double samples_per_second = 0;  ///< of all ranks together
  int world_size = 1;
  std::string device{};
  std::string backend{};
  std::string precision = "fp32";
  std::string parameters_sha256{};  ///< of the weights, f32 little-endian, in state_dict order and PyTorch's layout
  MemoryTable planned_memory{};     ///< of a rank's device, before the run
  MemoryTable peak_memory{};        ///< the most that rank 0 had allocated

  std::string to_json() const;
  /// The inverse; nothing if the text is not the summary of a run that finished.
  static std::optional<Summary> from_json(std::string_view text);
};

/// summary.json of a run that did not finish. It has no accuracy and no hash of weights: nothing was evaluated.
struct UnfinishedRun {
  Outcome outcome = Outcome::failed;
  std::string reason{};           ///< the error message
  std::int64_t steps = 0;         ///< made so far; a checkpoint may have fewer
  std::int64_t epoch = 0;         ///< 0 for the first
  double seconds = 0;             ///< training only
  double samples_per_second = 0;  ///< of all ranks together
  int world_size = 1;
  std::string device{};
  std::string backend{};
  std::string precision{};

  std::string to_json() const;
};

}  // namespace gradring::train
