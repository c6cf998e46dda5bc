// SPDX-License-Identifier: Apache-2.0
#include "train/view/html_report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "train/records/metrics/byte_text.h"
#include "train/records/metrics/memory_ledger.h"
#include "train/view/page/document.h"
#include "train/view/page/drawing.h"
#include "train/view/page/html.h"
#include "train/view/page/number_text.h"
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

std::string shown(std::size_t bytes) { return memory_text(static_cast<double>(bytes)); }

/// What rank 0 allocated, from the end of the run.
std::optional<MemoryTable> measured_in(const RunHistory& history) {
  if (!history.has_ended || history.ends.back().record.peak_memory.total() == 0) return std::nullopt;
  return history.ends.back().record.peak_memory;
}

std::string note_of(const RunHistory& history, bool is_measured) {
  if (is_measured) return "Planned per rank before the start; measured: peak allocation of rank 0.";
  const bool is_counted = !history.ranks.empty() && !history.ranks.back().record.memory.empty();
  const double peak = is_counted ? std::ranges::max(history.ranks.back().record.memory) : 0;
  return "Planned per rank before the start. The classes were not measured, because the run did not finish" +
         (peak > 0 ? "; the highest total of a rank so far is " + memory_text(peak) + "." : std::string("."));
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
         page::stacked_bar({{"compute", compute, 0},
                            {"data", rank.data_wait, 5},
                            {"exposed communication", rank.exposed_communication, 1}},
                           longest, page::seconds_text),
         course_of(rank, highest), memory_text(rank.memory)});
  }
  return fmt::format(
      R"(<div class="card"><p class="lead">{}</p>{}{}{}<p class="note below">Means of a step. Own time: the step without exposed communication, which is the time a rank waits for other ranks' gradients. Ranks make their steps together, so their step times are equal; the straggler is the rank that waits least: the longest own time, if it exceeds the median of the others by more than {}. On GPUs exposed communication is not measured.</p></div>)",
      page::escaped(straggler_text(ranks)), distribution_of(ranks),
      page::legend({{"compute", 0}, {"data", 5}, {"exposed communication", 1}}), table.html(), margin_text());
}

std::string memory_table(const RunHistory& history) {
  if (history.headers.empty()) return "<p>The memory is not known: metrics.jsonl has no header.</p>";
  const MemoryTable& planned = history.headers.back().record.planned_memory;
  const std::optional<MemoryTable> measured = measured_in(history);
  std::size_t largest = 0;
  for (const MemoryClass each : all_memory_classes())
    largest = std::max({largest, planned[each], measured ? (*measured)[each] : 0});
  page::Table table{.head = {"Class", "Planned", "Measured", ""}, .numeric = {false, true, true, false}};
  for (const MemoryClass each : all_memory_classes()) {
    const std::size_t peak = measured ? (*measured)[each] : 0;
    if (planned[each] + peak == 0) continue;
    const auto bar = [&](const char* name, std::size_t bytes, int color) {
      return page::stacked_bar({{name, static_cast<double>(bytes), color}}, static_cast<double>(largest), memory_text);
    };
    table.rows.push_back({std::string(name_of(each)), shown(planned[each]), measured ? shown(peak) : "–",
                          bar("planned", planned[each], 7) + (measured ? bar("measured", peak, 0) : "")});
  }
  table.rows.push_back({"<b>total</b>", fmt::format("<b>{}</b>", shown(planned.total())),
                        measured ? fmt::format("<b>{}</b>", shown(measured->total())) : "–", ""});
  table.caption = note_of(history, measured.has_value());
  return fmt::format(R"(<div class="card">{}{}</div>)", page::legend({{"planned", 7}, {"measured", 0}}), table.html());
}

}  // namespace gradring::train
