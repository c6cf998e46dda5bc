// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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
