// SPDX-License-Identifier: Apache-2.0
#include "train/runs/compare_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "train/runs/run_config.h"
#include "train/runs/run_list.h"
#include "train/runs/text_table.h"

namespace gradring::train {
namespace {

constexpr std::size_t kLeastRunColumns = 10;
constexpr std::size_t kMostRunColumns = 28;
constexpr std::size_t kComparedCurveColumns = 16;

/// A row of results; `value` is what is compared, if the row has a best value.
struct Result {
  const char* name;
  std::function<std::string(const ListedRun&)> text;
  std::function<std::optional<double>(const ListedRun&)> value = {};
  bool higher_is_better = true;
};

std::vector<Result> results(Glyphs glyphs) {
  return {
      {"state", [](const ListedRun& run) { return std::string(name_of(run.state)); }},
      {"steps", [](const ListedRun& run) { return fmt::to_string(run.figures.steps); }},
      {"best accuracy %", [](const ListedRun& run) { return percent_text(run.figures.best_accuracy); },
       [](const ListedRun& run) { return run.figures.best_accuracy; }},
      {"best saved %", [](const ListedRun& run) { return percent_text(run.figures.best_saved_accuracy); },
       [](const ListedRun& run) { return run.figures.best_saved_accuracy; }},
      {"last accuracy %", [](const ListedRun& run) { return percent_text(run.figures.last_accuracy); },
       [](const ListedRun& run) { return run.figures.last_accuracy; }},
      {"evaluation loss", [](const ListedRun& run) { return loss_text(run.figures.last_eval_loss); },
       [](const ListedRun& run) { return run.figures.last_eval_loss; }, false},
      {"training loss", [](const ListedRun& run) { return loss_text(run.figures.last_loss); },
       [](const ListedRun& run) { return run.figures.last_loss; }, false},
      {"time", [](const ListedRun& run) { return duration_text(run.figures.seconds); }},
      {"samples/s",
       [](const ListedRun& run) {
         const auto& speed = run.figures.samples_per_second;
         return speed ? fmt::format("{:.0f}", *speed) : "-";
       },
       [](const ListedRun& run) { return run.figures.samples_per_second; }},
      {"loss curve", [glyphs](const ListedRun& run) { return sparkline(run.losses, kComparedCurveColumns, glyphs); }}};
}

/// The best value, unless fewer than two runs differ in it.
std::optional<double> best_of(const std::vector<ListedRun>& runs, const Result& result) {
  if (!result.value) return std::nullopt;
  std::vector<double> values;
  for (const ListedRun& run : runs)
    if (const auto value = result.value(run); value && std::isfinite(*value)) values.push_back(*value);
  const auto [least, most] = std::ranges::minmax_element(values);
  if (values.size() < 2 || *least == *most) return std::nullopt;
  return result.higher_is_better ? *most : *least;
}

std::vector<ListedRun> listed_runs(std::span<const Run> runs) {
  std::vector<ListedRun> all;
  for (const Run& run : runs) all.push_back(listed(run, run.name()));
  const auto name_is_taken = [&all](const ListedRun& run) {
    return std::ranges::count(all, run.name, &ListedRun::name) > 1;
  };
  std::vector<bool> taken;
  for (const ListedRun& run : all) taken.push_back(name_is_taken(run));
  for (std::size_t i = 0; i < all.size(); ++i)
    if (taken[i]) all[i].name = all[i].path.string();
  return all;
}

/// Rows of a table that has a column for each run.
using Rows = std::vector<std::vector<std::string>>;

Rows difference_rows(std::span<const Run> runs) {
  Rows rows;
  for (ConfigDifference& difference : config_differences(runs)) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(difference.name);
    for (std::string& value : difference.values) row.push_back(value.empty() ? "-" : std::move(value));
  }
  return rows;
}

Rows result_rows(const std::vector<ListedRun>& runs, Glyphs glyphs) {
  Rows rows;
  for (const Result& result : results(glyphs)) {
    const auto best = best_of(runs, result);
    std::vector<std::string>& row = rows.emplace_back();
    row.emplace_back(result.name);
    for (const ListedRun& run : runs) row.push_back(result.text(run) + (best && result.value(run) == best ? "*" : ""));
  }
  return rows;
}

/// The columns [begin, end) of the runs behind the names of the rows.
std::string part_of(const Rows& rows, const std::vector<ListedRun>& runs, std::size_t begin, std::size_t end,
                    const char* head, std::optional<std::size_t> width, Glyphs glyphs) {
  TextTable table{.columns = {{.head = head}}};
  for (std::size_t i = begin; i < end; ++i)
    table.columns.push_back({.head = width ? shortened(runs[i].name, kMostRunColumns, glyphs, true) : runs[i].name,
                             .least = kLeastRunColumns,
                             .keeps_ends = true});
  for (const auto& row : rows) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    cells.push_back(row.front());
    for (std::size_t i = begin; i < end; ++i) cells.push_back(row[i + 1]);
  }
  return table.text(width, glyphs);
}

}  // namespace

std::string comparison_of(std::span<const Run> runs, std::optional<std::size_t> width, Glyphs glyphs) {
  const std::vector<ListedRun> all = listed_runs(runs);
  const Rows differences = difference_rows(runs), values = result_rows(all, glyphs);
  std::size_t names = 0;
  for (const Rows* rows : {&differences, &values})
    for (const auto& row : *rows) names = std::max(names, columns_of(row.front()));
  constexpr std::size_t kUsefulRunColumns = kComparedCurveColumns;
  const std::size_t space = width && *width > names ? *width - names : 0;
  const std::size_t beside = width ? std::max<std::size_t>(1, space / (kUsefulRunColumns + 1)) : all.size();
  std::string text;
  for (std::size_t begin = 0; begin < all.size(); begin += beside) {
    const std::size_t end = std::min(all.size(), begin + beside);
    if (begin > 0) text += "\n";
    text +=
        differences.empty() ? "no setting differs\n" : part_of(differences, all, begin, end, "differs", width, glyphs);
    text += "\n" + part_of(values, all, begin, end, "result", width, glyphs);
  }
  return text;
}

nlohmann::ordered_json comparison_json(std::span<const Run> runs) {
  nlohmann::ordered_json json{{"differences", nlohmann::ordered_json::array()},
                              {"runs", nlohmann::ordered_json::array()}};
  for (const ConfigDifference& difference : config_differences(runs))
    json["differences"].push_back({{"name", difference.name}, {"values", difference.values}});
  for (const ListedRun& run : listed_runs(runs)) json["runs"].push_back(to_json(run));
  return json;
}

}  // namespace gradring::train
