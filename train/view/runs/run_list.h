// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/view/runs/run.h"
#include "train/view/runs/text_table.h"

namespace gradring::train {

/// A run without its events, which may be many.
struct ListedRun {
  std::filesystem::path path{};
  std::string name{};  ///< as it is listed
  RunState state = RunState::failed;
  std::string reason{};
  RunFigures figures{};
  std::string given_name{};  ///< --name; empty: none
  std::vector<std::string> tags{};
  std::vector<double> losses{};  ///< of training, in at most 64 equal parts
};

/// `name` is how it is listed.
ListedRun listed(const Run& run, std::string name);

struct RunList {
  std::vector<ListedRun> runs{};
  std::vector<std::string> warnings{};  ///< incomplete lines
  std::vector<std::string> problems{};  ///< runs that are left out
};

/// Reads the runs that `locations` name: folders of runs, or single runs. One that cannot be read becomes a problem.
///
/// Errors    UsageError if a location is neither.
RunList list_runs(const std::vector<std::string>& locations);

/// The values by which runs are sorted.
inline constexpr std::array<std::string_view, 8> kSortKeys = {"started", "name", "state", "best",
                                                              "last",    "loss", "steps", "time"};

struct ListQuery {
  std::string sort = "started";  ///< one of kSortKeys
  bool reverse = false;
  std::vector<RunState> states{};   ///< empty: all
  std::vector<std::string> tags{};  ///< all of which a run has
  std::size_t limit = 0;            ///< 0: all
};

/// The runs that match, in order: the newest, the highest accuracy, the lowest loss, the most steps and the longest
/// time first; names and states ascending. Runs without the value are the last.
std::vector<ListedRun> selected(std::vector<ListedRun> runs, const ListQuery& query);

/// A line for each run, at most `width` columns wide if there is a width.
std::string table_of(const std::vector<ListedRun>& runs, std::optional<std::size_t> width, Glyphs glyphs);

nlohmann::ordered_json to_json(const ListedRun& run);

/// One run in full, for a terminal of `width` columns: what it trains, its state, results, speed, times of each rank,
/// evaluations, starts and faults.
std::string description_of(const Run& run, std::size_t width, Glyphs glyphs);

/// The same as JSON, with the configuration; without the training steps.
nlohmann::ordered_json full_json(const Run& run);

/// Runs side by side, a column for each: first the settings in which they differ, then their results. The best value of
/// a row is marked "*". Runs that do not fit beside each other in `width` columns follow below.
std::string comparison_of(std::span<const Run> runs, std::optional<std::size_t> width, Glyphs glyphs);

/// {"differences": [{"name", "values"}], "runs": [as runs ls --json]}
nlohmann::ordered_json comparison_json(std::span<const Run> runs);

}  // namespace gradring::train
