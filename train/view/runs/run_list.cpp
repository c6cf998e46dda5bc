// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/run_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>

#include "train/options/usage_error.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kLossParts = 64;
constexpr std::size_t kListedCurveColumns = 8;

void add(RunList& list, const fs::path& path, std::string name) try {
  Run run = open_run(path, wall_time(), skim_line);
  const bool is_running = run.state == RunState::running;  // its last line may be about to be completed
  if (!is_running) std::ranges::move(run.history.warnings, std::back_inserter(list.warnings));
  list.runs.push_back(listed(run, std::move(name)));
} catch (const EnvironmentError& error) {
  list.problems.emplace_back(error.what());
} catch (const UsageError& error) {  // it was removed meanwhile
  list.problems.emplace_back(error.what());
}

/// A number that orders runs ascending; nothing if the run has no such value.
std::optional<double> rank_of(const ListedRun& run, std::string_view key) {
  const auto negative = [](std::optional<double> value) { return value ? std::optional(-*value) : value; };
  const RunFigures& figures = run.figures;
  if (key == "started") return figures.started > 0 ? std::optional(-figures.started) : std::nullopt;
  if (key == "state") return static_cast<double>(run.state);
  if (key == "best") return negative(figures.selecting().best_accuracy);
  if (key == "last") return negative(figures.selecting().last_accuracy);
  if (key == "loss") return figures.last_loss;
  if (key == "steps") return -static_cast<double>(figures.steps);
  if (key == "time") return -figures.seconds;
  return 0.0;  // by name
}

/// NaN is no value.
bool precedes(const ListedRun& some, const ListedRun& other, const ListQuery& query) {
  const auto value = rank_of(some, query.sort), other_value = rank_of(other, query.sort);
  const bool has = value && !std::isnan(*value), other_has = other_value && !std::isnan(*other_value);
  if (has != other_has) return has;
  if (has && *value != *other_value) return query.reverse ? *value > *other_value : *value < *other_value;
  return query.reverse && query.sort == "name" ? some.name > other.name : some.name < other.name;
}

bool matches(const ListedRun& run, const ListQuery& query) {
  const bool has_tags = std::ranges::all_of(
      query.tags, [&run](const std::string& tag) { return std::ranges::find(run.tags, tag) != run.tags.end(); });
  return has_tags && (query.states.empty() || std::ranges::find(query.states, run.state) != query.states.end());
}

/// "400/938"; "938" if all are made, or the number of planned steps is unknown.
std::string steps_text(const RunFigures& figures) {
  if (figures.total_steps <= figures.steps) return fmt::to_string(figures.steps);
  return fmt::format("{}/{}", figures.steps, figures.total_steps);
}

/// Whether --name is more than how the directory begins, which is called by it if --run-dir is absent.
bool says_more_by_its_name(const ListedRun& run) { return !run.path.filename().string().starts_with(run.given_name); }

Json json_of(std::optional<double> value) { return value && std::isfinite(*value) ? Json(*value) : Json(); }

}  // namespace

ListedRun listed(const Run& run, std::string name) {
  std::vector<double> losses;
  for (const auto& [time, step] : run.history.steps) losses.push_back(step.loss);
  return {.path = run.path,
          .name = std::move(name),
          .state = run.state,
          .reason = run.reason,
          .figures = run.figures,
          .given_name = run.header().name,
          .tags = run.header().tags,
          .losses = part_means(losses, kLossParts)};
}

RunList list_runs(const std::vector<std::string>& locations) {
  RunList list;
  for (const std::string& location : locations) {
    std::error_code ignored;
    if (is_run(location)) {
      add(list, location, location);
      continue;
    }
    for (const fs::path& path : runs_in(location)) add(list, path, path.filename());
  }
  return list;
}

std::vector<ListedRun> selected(std::vector<ListedRun> runs, const ListQuery& query) {
  std::erase_if(runs, [&query](const ListedRun& run) { return !matches(run, query); });
  std::ranges::stable_sort(
      runs, [&query](const ListedRun& some, const ListedRun& other) { return precedes(some, other, query); });
  if (query.limit > 0 && runs.size() > query.limit) runs.resize(query.limit);
  return runs;
}

std::string table_of(const std::vector<ListedRun>& runs, std::optional<std::size_t> width, Glyphs glyphs) {
  TextTable table{.columns = {{.head = "run", .least = 12, .keeps_ends = true},
                              {.head = "state"},
                              {.head = "best %", .right_aligned = true},
                              {.head = "last %", .right_aligned = true},
                              {.head = "loss", .right_aligned = true},
                              {.head = "steps", .right_aligned = true, .least = 7},
                              {.head = "time", .right_aligned = true},
                              {.head = "curve"},
                              {.head = "tags", .least = 4}}};
  const bool any_validated = std::ranges::any_of(runs, [](const ListedRun& run) { return run.figures.is_validated; });
  const bool any_named = std::ranges::any_of(runs, says_more_by_its_name);
  if (any_validated) table.columns.insert(table.columns.begin() + 4, {.head = "set"});
  if (any_named) table.columns.insert(table.columns.begin() + 1, {.head = "name", .least = 8, .keeps_ends = true});
  for (const ListedRun& run : runs) {
    const SplitFigures& evaluated = run.figures.selecting();
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {run.name,
           std::string(name_of(run.state)),
           percent_text(evaluated.best_accuracy),
           percent_text(evaluated.last_accuracy),
           loss_text(run.figures.last_loss),
           steps_text(run.figures),
           duration_text(run.figures.seconds),
           sparkline(run.losses, kListedCurveColumns, glyphs),
           fmt::format("{}", fmt::join(run.tags, ","))};
    const char* const split = run.figures.is_validated ? "val" : evaluated.best_accuracy ? "test" : "";
    if (any_validated) row.insert(row.begin() + 4, split);
    if (any_named) row.insert(row.begin() + 1, run.given_name);
  }
  return table.text(width, glyphs);
}

Json to_json(const ListedRun& run) {
  const RunFigures& figures = run.figures;
  const SplitFigures& evaluated = figures.selecting();
  return {{"path", run.path.string()},
          {"name", run.given_name},
          {"state", name_of(run.state)},
          {"reason", run.reason},
          {"tags", run.tags},
          {"steps", figures.steps},
          {"total_steps", figures.total_steps},
          {"evaluated_on", figures.is_validated ? kValidationSplit : kTestSplit},
          {"best_accuracy", json_of(evaluated.best_accuracy)},
          {"best_step", evaluated.best_accuracy ? Json(evaluated.best_step) : Json()},
          {"best_saved_accuracy", json_of(figures.best_saved_accuracy)},
          {"best_saved_step", figures.best_saved_accuracy ? Json(figures.best_saved_step) : Json()},
          {"last_accuracy", json_of(evaluated.last_accuracy)},
          {"last_eval_loss", json_of(evaluated.last_loss)},
          {"test_accuracy", json_of(figures.test.last_accuracy)},
          {"last_loss", json_of(figures.last_loss)},
          {"samples_per_second", json_of(figures.samples_per_second)},
          {"started", figures.started > 0 ? Json(figures.started) : Json()},
          {"seconds", figures.seconds}};
}

}  // namespace gradring::train
