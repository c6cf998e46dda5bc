// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/rank_means.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "train/records/metrics/median.h"

namespace gradring::train {
namespace {

/// The value of a rank; 0 if an event has none, or NaN, which has no place in an order.
double at(const std::vector<double>& values, std::size_t rank) {
  return rank < values.size() && !std::isnan(values[rank]) ? values[rank] : 0;
}

/// The median of what other ranks than `left_out` work.
double median_of_others(std::span<const RankMeans> ranks, std::size_t left_out) {
  std::vector<double> works;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (rank != left_out) works.push_back(ranks[rank].own());
  return median(std::move(works));
}

}  // namespace

std::vector<RankMeans> rank_means(std::span<const Timed<RanksRecord>> events) {
  if (events.empty()) return {};
  std::vector<RankMeans> means(events.back().record.seconds.size());
  double steps = 0;
  for (const auto& [time, record] : events) {
    if (record.seconds.size() != means.size()) continue;  // before the number of ranks changed
    const auto weight = static_cast<double>(std::max<std::int64_t>(record.steps, 1));
    steps += weight;
    const auto add = [weight, steps](double& mean, double value) { mean += (value - mean) * weight / steps; };
    for (std::size_t rank = 0; rank < means.size(); ++rank) {
      add(means[rank].seconds, at(record.seconds, rank));
      add(means[rank].data_wait, at(record.data_wait, rank));
      add(means[rank].exposed_communication, at(record.exposed_communication, rank));
      means[rank].course.push_back(at(record.seconds, rank) - at(record.exposed_communication, rank));
      means[rank].memory = std::max(means[rank].memory, at(record.memory, rank));
    }
  }
  return means;
}

std::vector<std::size_t> shown_ranks(std::span<const RankMeans> ranks, std::size_t most) {
  std::vector<std::size_t> shown(ranks.size());
  std::iota(shown.begin(), shown.end(), 0);
  if (shown.size() <= most) return shown;
  std::ranges::stable_sort(shown, std::greater(), [ranks](std::size_t rank) { return ranks[rank].own(); });
  shown.resize(most);
  std::ranges::sort(shown);
  return shown;
}

std::optional<SlowestRank> straggler_of(std::span<const RankMeans> ranks) {
  if (ranks.size() < 2) return std::nullopt;
  const auto slowest = std::ranges::max_element(ranks, {}, &RankMeans::own);
  const auto rank = static_cast<std::size_t>(slowest - ranks.begin());
  const double others = median_of_others(ranks, rank);
  const double delay = slowest->own() - others;
  if (!(delay > std::max(kStragglerShare * others, kStragglerSeconds))) return std::nullopt;
  return SlowestRank{.rank = rank, .delay = delay};
}

}  // namespace gradring::train
