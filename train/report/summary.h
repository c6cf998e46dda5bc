// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "train/memory/memory_table.h"

namespace gradring::train {

/// The result of a run that finished: summary.json. (That of another run: outcome.h.)
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

}  // namespace gradring::train
