// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "train/records/metrics/run_history.h"

namespace gradring::train {

/// Times of a rank's steps in seconds: means over steps.
struct RankMeans {
  double seconds = 0;
  double data_wait = 0;              ///< part of seconds
  double exposed_communication = 0;  ///< part of seconds: waiting for other ranks
  double memory = 0;                 ///< peak, in bytes
  std::vector<double> course{};      ///< own work in each event

  /// Its own work, for which other ranks wait if it is longer than theirs.
  double own() const { return seconds - exposed_communication; }
};

/// Of each rank, over all `ranks` events whose number of ranks is that of the last one.
std::vector<RankMeans> rank_means(std::span<const Timed<RanksRecord>> events);

/// The ranks that a view has room for: all, or the `most` of longest own work; ascending.
std::vector<std::size_t> shown_ranks(std::span<const RankMeans> ranks, std::size_t most);

struct SlowestRank {
  std::size_t rank = 0;
  double delay = 0;  ///< seconds of a step by which its own work exceeds the median of the others
};

inline constexpr double kStragglerShare = 0.05;
inline constexpr double kStragglerSeconds = 1e-3;

/// The rank whose own work takes longest, if it exceeds the median of the others by more than kStragglerShare of it and
/// kStragglerSeconds. Synchronous ranks have equal step times, and only the waits tell them apart.
std::optional<SlowestRank> straggler_of(std::span<const RankMeans> ranks);

}  // namespace gradring::train
