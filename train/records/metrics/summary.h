// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/files/sha256.h"
#include "train/records/metrics/memory_ledger.h"

namespace gradring::train {

// The hash of the weights in summary.json.
using data::Sha256;
using data::Sha256Sum;
using data::to_hex;

/// How a run ended: "outcome" in summary.json.
enum class Outcome : std::uint8_t {
  finished,     ///< all steps and the evaluation after them
  interrupted,  ///< stopped by a signal, after a checkpoint; --resume auto continues it
  diverged,     ///< a loss or gradient was not finite
  failed,       ///< any other error: a lost rank, a full disk
};

std::string_view name_of(Outcome outcome);
/// The outcome of that name, if there is one.
std::optional<Outcome> outcome_named(std::string_view name);

/// How the samples of a class were classified.
struct ClassResult {
  std::string name;
  std::int64_t samples = 0;
  std::optional<double> precision{};  ///< of the samples that were classified so, if any: the share of this class
  std::optional<double> recall{};     ///< of the samples of this class, if any: the share that was classified so
};

/// A JSON array with an object for each class.
nlohmann::ordered_json to_json(const std::vector<ClassResult>& classes);

/// summary.json of a run that finished.
struct Summary {
  double accuracy = 0;                    ///< on the test set, 0..1, over all ranks
  double loss = 0;                        ///< on the test set, mean
  std::optional<double> top5_accuracy{};  ///< the class is among the five likeliest; empty with up to five classes
  std::optional<double> ema_accuracy{};   ///< the same of the averaged weights, if any
  std::optional<double> tta_accuracy{};   ///< both with test-time augmentation (--tta), if any
  std::optional<double> ema_tta_accuracy{};
  std::optional<double> validation_accuracy{};  ///< on the validation set (--val-split), if any
  std::optional<double> validation_loss{};
  std::vector<ClassResult> classes{};             ///< on the test set
  std::vector<ClassResult> validation_classes{};  ///< on the validation set, if any
  double train_loss = 0;  ///< mean over the samples of the last epoch, each before its step's update;
                          ///< NaN if no step of it had a finite one
  std::int64_t steps = 0;
  double seconds = 0;             ///< training only, without evaluation and start-up
  double samples_per_second = 0;  ///< of all ranks
  int world_size = 1;
  std::string device{};
  std::string backend{};
  std::string precision = "fp32";
  std::string parameters_sha256{};  ///< of the weights, f32 little-endian, in state_dict order and PyTorch's layout
  MemoryTable planned_memory{};     ///< of a rank's device
  MemoryTable peak_memory{};        ///< peak allocation of rank 0
  /// Peak allocation of the devices of --data-parallel besides the first; 0: there are none.
  std::size_t further_device_bytes = 0;

  std::string to_json() const;
  /// Empty if the text is not the summary of a finished run.
  static std::optional<Summary> from_json(std::string_view text);
};

/// summary.json of a run that did not finish: without accuracy and hash of the weights.
struct UnfinishedRun {
  Outcome outcome = Outcome::failed;
  std::string reason{};           ///< the error message
  std::int64_t steps = 0;         ///< of the run; the last checkpoint may have fewer
  std::int64_t epoch = 0;         ///< 0 for the first
  double seconds = 0;             ///< training only
  double samples_per_second = 0;  ///< of all ranks
  int world_size = 1;
  std::string device{};
  std::string backend{};
  std::string precision{};

  std::string to_json() const;
  /// Empty if the text is not the summary of a run that did not finish.
  static std::optional<UnfinishedRun> from_json(std::string_view text);
};

}  // namespace gradring::train
