// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/run_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "train/view/runs/run_config.h"

namespace gradring::train {
namespace {

constexpr std::size_t kLeastRunColumns = 10;
constexpr std::size_t kMostRunColumns = 28;
constexpr std::size_t kComparedCurveColumns = 16;

using Value = std::function<std::optional<double>(const RunFigures&)>;

/// A row of results; `value` is what is compared, if the row has a best value.
struct Result {
  std::string name;
  std::function<std::string(const ListedRun&)> text;
  Value value = {};
  bool higher_is_better = true;
};

Result result_of(std::string name, Value value, std::string (*text)(std::optional<double>), bool higher_is_better) {
  return {.name = std::move(name),
          .text = [value, text](const ListedRun& run) { return text(value(run.figures)); },
          .value = value,
          .higher_is_better = higher_is_better};
}

/// Results on the test set, or on the validation set, which other runs may not have: they are not of the same samples.
void add_split(std::vector<Result>& results, bool validation) {
  const std::string split = validation ? "validation" : "test";
  const auto on_split = [validation](std::optional<double> SplitFigures::*value) {
    return [=](const RunFigures& figures) { return (validation ? figures.validation : figures.test).*value; };
  };
  results.push_back(result_of("best " + split + " %", on_split(&SplitFigures::best_accuracy), percent_text, true));
  const Value saved = [validation](const RunFigures& figures) {
    return figures.is_validated == validation ? figures.best_saved_accuracy : std::nullopt;
  };
  results.push_back(result_of("saved " + split + " %", saved, percent_text, true));
  results.push_back(result_of("last " + split + " %", on_split(&SplitFigures::last_accuracy), percent_text, true));
  results.push_back(result_of(split + " loss", on_split(&SplitFigures::last_loss), loss_text, false));
}

std::string speed_text(std::optional<double> speed) { return speed ? fmt::format("{:.0f}", *speed) : "-"; }

std::vector<Result> results(const std::vector<ListedRun>& runs, Glyphs glyphs) {
  std::vector<Result> all = {
      {.name = "state", .text = [](const ListedRun& run) { return std::string(name_of(run.state)); }},
      {.name = "steps", .text = [](const ListedRun& run) { return fmt::to_string(run.figures.steps); }}};
  if (std::ranges::any_of(runs, [](const ListedRun& run) { return run.figures.is_validated; })) add_split(all, true);
  add_split(all, false);
  all.push_back(result_of(
      "training loss", [](const RunFigures& figures) { return figures.last_loss; }, loss_text, false));
  all.push_back({.name = "time", .text = [](const ListedRun& run) { return duration_text(run.figures.seconds); }});
  all.push_back(result_of(
      "samples/s", [](const RunFigures& figures) { return figures.samples_per_second; }, speed_text, true));
  all.push_back({.name = "loss curve", .text = [glyphs](const ListedRun& run) {
                   return sparkline(run.losses, kComparedCurveColumns, glyphs);
                 }});
  return all;
}

/// The best value, unless fewer than two runs differ in it.
std::optional<double> best_of(const std::vector<ListedRun>& runs, const Result& result) {
  if (!result.value) return std::nullopt;
  std::vector<double> values;
  for (const ListedRun& run : runs)
    if (const auto value = result.value(run.figures); value && std::isfinite(*value)) values.push_back(*value);
  const auto [least, most] = std::ranges::minmax_element(values);
  if (values.size() < 2 || *least == *most) return std::nullopt;
  return result.higher_is_better ? *most : *least;
}

std::vector<ListedRun> listed_runs(std::span<const Run> runs) {
  std::vector<ListedRun> all;
  for (const Run& run : runs) {
    const bool has_own_name = std::ranges::count(runs, run.name(), &Run::name) == 1;
    all.push_back(listed(run, has_own_name ? run.name() : run.path.string()));
  }
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
  for (const Result& result : results(runs, glyphs)) {
    const auto best = best_of(runs, result);
    std::vector<std::string>& row = rows.emplace_back();
    row.emplace_back(result.name);
    for (const ListedRun& run : runs)
      row.push_back(result.text(run) + (best && result.value(run.figures) == best ? "*" : ""));
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
