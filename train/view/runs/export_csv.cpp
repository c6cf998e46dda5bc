// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>

#include "train/records/metrics/csv.h"
#include "train/records/metrics/metrics_lines.h"
#include "train/records/metrics/run_events_json.h"

namespace gradring::train {
namespace {

constexpr const char* kLineEnd = "\r\n";
constexpr const char* kRankColumn = "rank";

using Json = nlohmann::ordered_json;

/// Names of columns and their values.
using Row = std::vector<std::pair<std::string, std::string>>;

/// Of the head. A run has some hundred bytes of names, but a damaged file may have a name in each line.
constexpr std::size_t kMostHeadBytes = 1 << 20;

std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "nan" : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void add(Row& row, const std::string& name, const Json& value) {
  if (!value.is_object()) {
    row.emplace_back(name, value_text(value));
    return;
  }
  for (const auto& [member, each] : value.items()) add(row, name + "." + member, each);
}

Row row_of(const Json& event) {
  Row row;
  for (const auto& [name, value] : event.items())
    if (name != "event") add(row, name, value);
  return row;
}

/// Calls `use` with each row of a `ranks` event, whose lists have a value for each rank.
template <class Use>
void use_rank_rows(const Json& event, Use use) {
  std::size_t ranks = 0;
  for (const auto& [name, value] : event.items())
    if (value.is_array()) ranks = std::max(ranks, value.size());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Json single;
    for (const auto& [name, value] : event.items()) {
      if (value.is_array() && !single.contains(kRankColumn)) single[kRankColumn] = rank;
      if (!value.is_array())
        single[name] = value;
      else if (rank < value.size())
        single[name] = value[rank];
    }
    use(row_of(single));
  }
}

/// Calls `use` with each row of the next `most_lines` lines; `ignore` for lines that are no event.
template <class Use, class Ignore>
void for_each_row(MetricsLines& lines, std::string_view kind, std::uint64_t most_lines, Use use, Ignore ignore) {
  std::string problem;
  while (lines.count() < most_lines) {
    const auto line = lines.next();
    if (!line) return;
    const std::optional<Json> event = event_in(*line, problem);
    if (!event) {
      ignore(problem);
      continue;
    }
    if (const auto name = event->find("event"); name == event->end() || *name != kind) continue;
    if (kind == "ranks")
      use_rank_rows(*event, use);
    else
      use(row_of(*event));
  }
}

/// The names of the columns, as many as fit.
class Columns {
 public:
  void add(const Row& row) {
    for (const auto& [name, value] : row) {
      if (number_of_.contains(name)) continue;
      const std::size_t bytes = name.size() + 1;
      if (bytes > kMostHeadBytes - bytes_) {
        is_full_ = true;
        continue;
      }
      bytes_ += bytes;
      number_of_.emplace(name, names_.size());
      names_.push_back(name);
    }
  }
  const std::vector<std::string>& names() const { return names_; }
  /// Whether there were others.
  bool is_full() const { return is_full_; }
  std::vector<std::string> fields(const Row& row) const {
    std::vector<std::string> fields(names_.size());
    for (const auto& [name, value] : row)
      if (const auto column = number_of_.find(name); column != number_of_.end()) fields[column->second] = value;
    return fields;
  }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> number_of_;
  std::size_t bytes_ = 0;
  bool is_full_ = false;
};

}  // namespace

bool is_exported_csv(std::string_view head) {
  if (!head.starts_with("time,")) return false;
  const std::size_t end = head.find(kLineEnd);
  head = head.substr(0, end == head.npos ? head.rfind(',') : end);  // without a name that is cut off
  for (std::size_t begin = 0; begin <= head.size();) {
    const std::string_view column = head.substr(begin, std::min(head.find(',', begin), head.size()) - begin);
    if (column != kRankColumn && !is_event_member(column.substr(0, column.find('.')))) return false;
    begin += column.size() + 1;
  }
  return true;
}

std::vector<std::string> export_csv(const std::filesystem::path& metrics, std::string_view event,
                                    const TextSink& sink) {
  MetricsLines lines(metrics);
  Columns columns;
  for_each_row(
      lines, event, UINT64_MAX, [&](const Row& row) { columns.add(row); },
      [&](const std::string& problem) { lines.ignore(problem); });
  std::vector<std::string> warnings = lines.warnings();
  if (columns.is_full())
    warnings.push_back(fmt::format("{}: the names of its members have more than {} bytes; later ones have no column",
                                   metrics.string(), kMostHeadBytes));
  if (columns.names().empty()) return warnings;
  sink(csv_line(columns.names(), kLineEnd));
  const std::uint64_t count = lines.count();  // a running run may have written more since
  lines.rewind();
  for_each_row(
      lines, event, count, [&](const Row& row) { sink(csv_line(columns.fields(row), kLineEnd)); },
      [](const std::string&) {});
  return warnings;
}

}  // namespace gradring::train
