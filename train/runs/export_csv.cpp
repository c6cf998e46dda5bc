// SPDX-License-Identifier: Apache-2.0
#include "train/runs/export_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "train/report/environment_error.h"
#include "train/report/run_events_json.h"

namespace gradring::train {
namespace {

using Json = nlohmann::ordered_json;

/// Names of columns and their values.
using Row = std::vector<std::pair<std::string, std::string>>;

/// A field; in quotes where it holds a separator, a quote or a line break.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

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

/// The rows of a `ranks` event, whose lists have a value for each rank.
std::vector<Row> rank_rows(const Json& event) {
  std::size_t ranks = 0;
  for (const auto& [name, value] : event.items())
    if (value.is_array()) ranks = std::max(ranks, value.size());
  std::vector<Row> rows(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Json single;
    for (const auto& [name, value] : event.items()) {
      if (value.is_array() && !single.contains("rank")) single["rank"] = rank;
      if (!value.is_array())
        single[name] = value;
      else if (rank < value.size())
        single[name] = value[rank];
    }
    rows[rank] = row_of(single);
  }
  return rows;
}

/// Calls `use` with each row of the file.
class RowReader {
 public:
  RowReader(std::ifstream& file, std::filesystem::path path, std::string_view event)
      : file_(file), path_(std::move(path)), event_(event) {}

  template <class Use>
  std::vector<std::string> for_each(std::uint64_t most_lines, Use use) {
    std::vector<std::string> warnings;
    lines_ = 0;
    for (std::string line; lines_ < most_lines && std::getline(file_, line);) {
      ++lines_;
      Json event = Json::parse(line, nullptr, false);
      if (!event.is_object()) {
        warnings.push_back(fmt::format("{}: line {} is {}, and is ignored", path_.string(), lines_,
                                       file_.eof() ? "incomplete" : "not an event"));
        continue;
      }
      event = in_schema_1(std::move(event));
      if (const auto name = event.find("event"); name == event.end() || *name != event_) continue;
      if (event_ != "ranks") {
        use(row_of(event));
        continue;
      }
      for (const Row& row : rank_rows(event)) use(row);
    }
    if (file_.bad()) throw EnvironmentError(fmt::format("cannot read {}: a read failed", path_.string()));
    return warnings;
  }

  std::uint64_t lines() const { return lines_; }

 private:
  std::ifstream& file_;
  std::filesystem::path path_;
  std::string_view event_;
  std::uint64_t lines_ = 0;
};

std::string line_of(const std::vector<std::string>& fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) line += (i > 0 ? "," : "") + field(fields[i]);
  return line + "\r\n";
}

}  // namespace

std::vector<std::string> export_csv(const std::filesystem::path& metrics, std::string_view event,
                                    const TextSink& sink) {
  std::ifstream file(metrics);
  if (!file)
    throw EnvironmentError(fmt::format("cannot read {}: {}", metrics.string(), std::generic_category().message(errno)));
  std::vector<std::string> columns;
  std::unordered_map<std::string, std::size_t> column_of;
  RowReader reader(file, metrics, event);
  std::vector<std::string> warnings = reader.for_each(UINT64_MAX, [&](const Row& row) {
    for (const auto& [name, value] : row)
      if (column_of.try_emplace(name, columns.size()).second) columns.push_back(name);
  });
  if (columns.empty()) return warnings;
  sink(line_of(columns));
  const std::uint64_t lines = reader.lines();  // a running run may have written more since
  file.clear();
  file.seekg(0);
  reader.for_each(lines, [&](const Row& row) {
    std::vector<std::string> fields(columns.size());
    for (const auto& [name, value] : row)
      if (const auto column = column_of.find(name); column != column_of.end()) fields[column->second] = value;
    sink(line_of(fields));
  });
  return warnings;
}

}  // namespace gradring::train
