// SPDX-License-Identifier: Apache-2.0
#include "train/view/html_report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "train/records/metrics/byte_text.h"
#include "train/view/html_report/bars.h"
#include "train/view/page/document.h"
#include "train/view/page/html.h"
#include "train/view/page/number_text.h"
#include "train/view/page/polyline.h"
#include "train/view/runs/rank_means.h"

namespace gradring::train {
namespace {

/// Of more ranks a page shows those that the others wait for.
constexpr std::size_t kMostRows = 64;

/// A small curve of the own time, from 0 to `highest`.
std::string course_of(const RankMeans& rank, double highest) {
  std::vector<page::GridPoint> points;
  const double last = std::max<double>(1, static_cast<double>(rank.course.size()) - 1);
  for (std::size_t i = 0; i < rank.course.size(); ++i)
    points.push_back({static_cast<int>(page::kColumns * static_cast<double>(i) / last),
                      static_cast<int>(page::kRows * (1 - (highest > 0 ? rank.course[i] / highest : 0)))});
  return fmt::format(
      R"(<svg class="spark" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true"><path class="line c0" d="{}"/></svg>)",
      page::kColumns, page::kRows, page::path_through(page::reduced(points)));
}

std::string margin_text() {
  return fmt::format("{:.0f} % and {}", 100 * kStragglerShare, page::seconds_text(kStragglerSeconds));
}

std::string straggler_text(std::span<const RankMeans> ranks) {
  if (ranks.size() < 2) return {};
  if (const auto straggler = straggler_of(ranks))
    return fmt::format("Rank {} is the straggler: its own time exceeds the median of the other ranks by {} per step.",
                       straggler->rank, page::seconds_text(straggler->delay));
  return fmt::format("No straggler: no rank's own time exceeds the median of the others by more than {}.",
                     margin_text());
}

/// How the values of all ranks are distributed, where not every rank has a row.
std::string distribution_of(std::span<const RankMeans> ranks) {
  if (ranks.size() <= kMostRows) return {};
  page::Table table{.head = {"", "Least", "Median", "95 %", "Most"}, .numeric = {false, true, true, true, true}};
  const auto add = [&](const char* name, std::string (*text)(double), auto value) {
    std::vector<double> values;
    for (const RankMeans& rank : ranks) values.push_back(value(rank));
    std::ranges::sort(values);
    const auto at = [&](double share) {
      return text(values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))]);
    };
    table.rows.push_back({name, at(0), at(0.5), at(0.95), at(1)});
  };
  add("Step", page::seconds_text, [](const RankMeans& rank) { return rank.seconds; });
  add("Own time", page::seconds_text, [](const RankMeans& rank) { return rank.own(); });
  add("Data", page::seconds_text, [](const RankMeans& rank) { return rank.data_wait; });
  add("Exposed comm.", page::seconds_text, [](const RankMeans& rank) { return rank.exposed_communication; });
  add("Peak memory", memory_text, [](const RankMeans& rank) { return rank.memory; });
  const std::string count = page::count_text(std::ssize(ranks));
  return fmt::format(
      R"(<h3>All {} ranks</h3>{}<p class="note below">gradring runs export --event ranks has each of them.</p><h3>The {} ranks of the longest own time</h3>)",
      count, table.html(), kMostRows);
}

}  // namespace

std::string ranks_table(const RunHistory& history) {
  const std::vector<RankMeans> ranks = rank_means(history.ranks);
  if (ranks.empty()) return "<p>The run was too short for times of its ranks (--log-every).</p>";
  const auto straggler = straggler_of(ranks);
  double longest = 0, highest = 0;
  for (const RankMeans& rank : ranks) {
    longest = std::max(longest, rank.seconds);
    for (const double own : rank.course) highest = std::max(highest, own);
  }
  page::Table table{.head = {"Rank", "Step", "Own time", "Data", "Exposed comm.", "Share of a step",
                             "Own time over the run", "Peak memory"},
                    .numeric = {false, true, true, true, true, false, false, true}};
  for (const std::size_t i : shown_ranks(ranks, kMostRows)) {
    const RankMeans& rank = ranks[i];
    const double compute = std::max(0.0, rank.own() - rank.data_wait);
    table.rows.push_back(
        {fmt::format("{}{}", i, straggler && straggler->rank == i ? R"( <b class="badge warn">straggler</b>)" : ""),
         page::seconds_text(rank.seconds), page::seconds_text(rank.own()), page::seconds_text(rank.data_wait),
         page::seconds_text(rank.exposed_communication),
         stacked_bar({{"compute", compute, 0},
                      {"data", rank.data_wait, 5},
                      {"exposed communication", rank.exposed_communication, 1}},
                     longest, page::seconds_text),
         course_of(rank, highest), memory_text(rank.memory)});
  }
  return fmt::format(
      R"(<div class="card"><p class="lead">{}</p>{}{}{}<p class="note below">Means of a step. Own time: the step without exposed communication, which is the time a rank waits for other ranks' gradients. Ranks make their steps together, so their step times are equal; the straggler is the rank that waits least: the longest own time, if it exceeds the median of the others by more than {}. On GPUs exposed communication is not measured.</p></div>)",
      page::escaped(straggler_text(ranks)), distribution_of(ranks),
      bar_legend({{"compute", 0, 0}, {"data", 0, 5}, {"exposed communication", 0, 1}}), table.html(), margin_text());
}

}  // namespace gradring::train
