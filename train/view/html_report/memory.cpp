// SPDX-License-Identifier: Apache-2.0
#include "train/view/html_report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "train/records/metrics/byte_text.h"
#include "train/records/metrics/memory_ledger.h"
#include "train/view/html_report/bars.h"
#include "train/view/page/document.h"
#include "train/view/page/number_text.h"

namespace gradring::train {
namespace {

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
      return stacked_bar({{name, static_cast<double>(bytes), color}}, static_cast<double>(largest), memory_text);
    };
    table.rows.push_back({std::string(name_of(each)), shown(planned[each]), measured ? shown(peak) : "–",
                          bar("planned", planned[each], 7) + (measured ? bar("measured", peak, 0) : "")});
  }
  table.rows.push_back({"<b>total</b>", fmt::format("<b>{}</b>", shown(planned.total())),
                        measured ? fmt::format("<b>{}</b>", shown(measured->total())) : "–", ""});
  table.caption = note_of(history, measured.has_value());
  return fmt::format(R"(<div class="card">{}{}</div>)", bar_legend({{"planned", 0, 7}, {"measured", 0, 0}}),
                     table.html());
}

}  // namespace gradring::train
