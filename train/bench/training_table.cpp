// SPDX-License-Identifier: Apache-2.0
#include "train/bench/training_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "train/view/runs/text_table.h"

namespace gradring::train::bench {
namespace {

constexpr double kMebibytes = 1.0 / (1024 * 1024);
constexpr double kPerCent = 100;

/// A column: heading of the text table, name and value in JSON.
struct TrainingColumn {
  std::string heading;
  std::string name;
  int digits = 0;    ///< behind the point
  double scale = 1;  ///< of the value in the text table
  std::function<std::optional<double>(const TrainingTable&, const TrainingRow&)> value;
};

template <class Number>
TrainingColumn measured(TrainingColumn column, Number Measurement::*number) {
  column.value = [number](const TrainingTable&, const TrainingRow& row) { return row.median(number); };
  return column;
}

TrainingColumn count(const std::string& name, const std::function<int(const TrainingLayout&)>& of) {
  return {.heading = name, .name = name, .value = [of](const TrainingTable&, const TrainingRow& row) {
            return std::optional<double>(of(row.layout));
          }};
}

const std::vector<TrainingColumn>& training_columns() {
  static const std::vector<TrainingColumn> columns = {
      count("ranks", [](const TrainingLayout& layout) { return layout.ranks; }),
      count("devices", [](const TrainingLayout& layout) { return layout.devices; }),
      count("cores", [](const TrainingLayout& layout) { return layout.cores(); }),
      measured({.heading = "s/epoch", .name = "seconds_per_epoch", .digits = 2}, &Measurement::seconds_per_epoch),
      measured({.heading = "samples/s", .name = "samples_per_second"}, &Measurement::samples_per_second),
      {.heading = "scaling",
       .name = "efficiency",
       .digits = 2,
       .value = [](const TrainingTable& table, const TrainingRow& row) { return table.efficiency(row); }},
      measured({.heading = "comm %", .name = "communication_share", .digits = 1, .scale = kPerCent},
               &Measurement::communication),
      {.heading = "CPU s",
       .name = "processor_seconds_per_epoch",
       .digits = 2,
       .value = [](const TrainingTable&, const TrainingRow& row) -> std::optional<double> {
         const double epochs = *row.median(&Measurement::seconds) / *row.median(&Measurement::seconds_per_epoch);
         return *row.median(&Measurement::processor_seconds) / epochs;
       }},
      {.heading = "CPU %",
       .name = "utilisation",
       .scale = kPerCent,
       .value = [](const TrainingTable& table, const TrainingRow& row) { return table.utilisation(row); }},
      measured({.heading = "plan MiB", .name = "planned_bytes", .digits = 1, .scale = kMebibytes},
               &Measurement::planned_bytes),
      measured({.heading = "peak MiB", .name = "peak_bytes", .digits = 1, .scale = kMebibytes},
               &Measurement::peak_bytes),
      measured({.heading = "others", .name = "further_device_bytes", .digits = 1, .scale = kMebibytes},
               &Measurement::further_bytes),
      measured({.heading = "RSS MiB", .name = "resident_bytes", .scale = kMebibytes}, &Measurement::resident_bytes),
      measured({.heading = "accuracy", .name = "accuracy", .digits = 4}, &Measurement::accuracy),
      measured({.heading = "loss", .name = "train_loss", .digits = 4}, &Measurement::loss),
  };
  return columns;
}

}  // namespace

std::optional<double> TrainingTable::efficiency(const TrainingRow& row) const {
  const auto base = std::ranges::find_if(rows, [&row](const TrainingRow& other) {
    return other.layout.cores() == 1 && other.layout.passes == 1 && other.framework == row.framework &&
           other.layout.series == row.layout.series && other.layout.precision == row.layout.precision;
  });
  if (base == rows.end()) return std::nullopt;
  return *row.median(&Measurement::samples_per_second) /
         (row.layout.cores() * *base->median(&Measurement::samples_per_second));
}

std::optional<double> TrainingTable::utilisation(const TrainingRow& row) const {
  const double processor = *row.median(&Measurement::processor_seconds);
  const double available = *row.median(&Measurement::seconds) * machine_cores;
  return processor > 0 && available > 0 ? std::optional(processor / available) : std::nullopt;
}

std::string to_text(const TrainingTable& table) {
  std::vector<std::string> headings;
  for (const TrainingColumn& column : training_columns()) headings.push_back(column.heading);
  TextTable shown = TextTable::with({""}, headings);
  for (const TrainingRow& row : table.rows) {
    std::vector<std::string>& cells = shown.rows.emplace_back(1, row.layout.name);
    for (const TrainingColumn& column : training_columns()) {
      const auto value = column.value(table, row);
      cells.push_back(value ? fmt::format("{:.{}f}", *value * column.scale, column.digits) : "-");
    }
  }
  std::string text = shown.text();
  for (const std::string& remark : table.remarks) text += remark + "\n";
  return text;
}

nlohmann::ordered_json to_json(const TrainingTable& table, const TrainingTask& task) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const TrainingRow& row : table.rows) {
    nlohmann::ordered_json json{{"name", row.layout.name},           {"framework", row.framework},
                                {"precision", row.layout.precision}, {"zero", row.layout.zero},
                                {"accumulate", row.layout.passes},   {"global_batch", row.layout.global_batch}};
    if (row.framework == "gradring") json["command"] = command_of(row.layout, task);
    for (const TrainingColumn& column : training_columns())
      if (const auto value = column.value(table, row)) json[column.name] = *value;
    for (const Measurement& round : row.rounds) json["seconds"].push_back(round.seconds);
    if (!row.rounds.back().losses.empty()) json["losses"] = row.rounds.back().losses;
    rows.push_back(std::move(json));
  }
  return {{"title", table.title},
          {"note", table.note},
          {"machine_cores", table.machine_cores},
          {"rows", rows},
          {"remarks", table.remarks}};
}

}  // namespace gradring::train::bench
