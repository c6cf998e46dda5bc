// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/report/run_history.h"

namespace gradring::train {

/// Means of a step of one rank over a run, in seconds.
struct MeanStep {
  double seconds = 0;
  double data_wait = 0;
  double exposed_communication = 0;
  double memory = 0;           ///< peak, in bytes
  std::vector<double> course;  ///< own time in each `ranks` event

  /// What the rank does itself: the step without waiting for other ranks' gradients.
  double own() const { return seconds - exposed_communication; }
};

/// One per rank of the newest start; events of starts with other numbers of ranks are left out.
std::vector<MeanStep> mean_steps_of(const RunHistory& history);

/// The rank for which the others wait: the one with the longest own time, if that exceeds the median of the others by
/// more than kStragglerMargin. Synchronous ranks have equal step times, and only the waits tell them apart.
std::optional<std::size_t> straggler_of(std::span<const MeanStep> ranks);

inline constexpr double kStragglerMargin = 0.05;

/// The table of ranks as HTML, with the straggler marked and the rule stated.
std::string ranks_table(const RunHistory& history);

}  // namespace gradring::train
