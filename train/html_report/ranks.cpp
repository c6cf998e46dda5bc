// SPDX-License-Identifier: Apache-2.0
#include "train/html_report/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "train/html_report/bars.h"
#include "train/page/document.h"
#include "train/page/html.h"
#include "train/page/number_text.h"
#include "train/page/polyline.h"

namespace gradring::train {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  const double upper = *middle;
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), middle)) / 2;
}

/// The median own time of all ranks but one.
double median_of_others(std::span<const MeanStep> ranks, std::size_t rank) {
  std::vector<double> others;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (i != rank) others.push_back(ranks[i].own());
  return median(std::move(others));
}

/// A small curve of the own time, from 0 to `highest`.
std::string course_of(const MeanStep& rank, double highest) {
  std::vector<page::GridPoint> points;
  const double last = std::max<double>(1, static_cast<double>(rank.course.size()) - 1);
  for (std::size_t i = 0; i < rank.course.size(); ++i)
    points.push_back({static_cast<int>(page::kColumns * static_cast<double>(i) / last),
                      static_cast<int>(page::kRows * (1 - (highest > 0 ? rank.course[i] / highest : 0)))});
  return fmt::format(
      R"(<svg class="spark" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true"><path class="line c0" d="{}"/></svg>)",
      page::kColumns, page::kRows, page::path_through(page::reduced(points)));
}

std::string verdict_on(std::span<const MeanStep> ranks) {
  if (ranks.size() < 2) return {};
  if (const auto rank = straggler_of(ranks)) {
    const double lag = ranks[*rank].own() - median_of_others(ranks, *rank);
    return fmt::format("Rank {} is the straggler: its own time exceeds the median of the other ranks by {} per step.",
                       *rank, page::seconds_text(lag));
  }
  return fmt::format("No straggler: no rank's own time exceeds the median of the others by more than {:.0f} %.",
                     100 * kStragglerMargin);
}

}  // namespace

std::vector<MeanStep> mean_steps_of(const RunHistory& history) {
  if (history.ranks.empty()) return {};
  const std::size_t size = history.ranks.back().record.seconds.size();
  std::vector<MeanStep> ranks(size);
  double steps = 0;
  for (const auto& [time, record] : history.ranks) {
    if (record.seconds.size() != size || record.data_wait.size() != size ||
        record.exposed_communication.size() != size || record.steps <= 0)
      continue;
    const auto weight = static_cast<double>(record.steps);
    steps += weight;
    for (std::size_t i = 0; i < size; ++i) {
      ranks[i].seconds += weight * record.seconds[i];
      ranks[i].data_wait += weight * record.data_wait[i];
      ranks[i].exposed_communication += weight * record.exposed_communication[i];
      ranks[i].course.push_back(record.seconds[i] - record.exposed_communication[i]);
      if (i < record.memory.size()) ranks[i].memory = std::max(ranks[i].memory, record.memory[i]);
    }
  }
  if (steps == 0) return {};
  for (MeanStep& rank : ranks) {
    rank.seconds /= steps;
    rank.data_wait /= steps;
    rank.exposed_communication /= steps;
  }
  return ranks;
}

std::optional<std::size_t> straggler_of(std::span<const MeanStep> ranks) {
  if (ranks.size() < 2) return std::nullopt;
  const auto slowest =
      std::ranges::max_element(ranks, {}, [](const MeanStep& rank) { return rank.own(); }) - ranks.begin();
  const auto rank = static_cast<std::size_t>(slowest);
  const double others = median_of_others(ranks, rank);
  if (!(ranks[rank].own() > others * (1 + kStragglerMargin))) return std::nullopt;
  return rank;
}

std::string ranks_table(const RunHistory& history) {
  const std::vector<MeanStep> ranks = mean_steps_of(history);
  if (ranks.empty()) return "<p>The run was too short for times of its ranks (--log-every).</p>";
  const auto straggler = straggler_of(ranks);
  double longest = 0, highest = 0;
  for (const MeanStep& rank : ranks) {
    longest = std::max(longest, rank.seconds);
    for (const double own : rank.course) highest = std::max(highest, own);
  }
  page::Table table{.head = {"Rank", "Step", "Own time", "Data", "Exposed comm.", "Share of a step",
                             "Own time over the run", "Peak memory"},
                    .numeric = {false, true, true, true, true, false, false, true}};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const MeanStep& rank = ranks[i];
    const double compute = std::max(0.0, rank.own() - rank.data_wait);
    table.rows.push_back({fmt::format("{}{}", i, straggler == i ? R"( <b class="badge warn">straggler</b>)" : ""),
                          page::seconds_text(rank.seconds), page::seconds_text(rank.own()),
                          page::seconds_text(rank.data_wait), page::seconds_text(rank.exposed_communication),
                          stacked_bar({{"compute", compute, 0},
                                       {"data", rank.data_wait, 5},
                                       {"exposed communication", rank.exposed_communication, 1}},
                                      longest, page::seconds_text),
                          course_of(rank, highest), page::bytes_text(rank.memory)});
  }
  return fmt::format(
      R"(<div class="card"><p class="verdict">{}</p>{}{}<p class="note below">Means of a step. Own time: the step without exposed communication, which is the time a rank waits for other ranks' gradients. Ranks make their steps together, so their step times are equal; the straggler is the rank that waits least: the longest own time, if it exceeds the median of the others by more than {:.0f} %. On GPUs exposed communication is not measured.</p></div>)",
      page::escaped(verdict_on(ranks)),
      bar_legend({{"compute", 0, 0}, {"data", 0, 5}, {"exposed communication", 0, 1}}), table.html(),
      100 * kStragglerMargin);
}

}  // namespace gradring::train
