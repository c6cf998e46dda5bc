// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/bench/statistics.h"
#include "train/bench/measured_training.h"

namespace gradring::train::bench {

/// A table of trainings: the first row of one core, with the same framework and precision, is what others scale from.
struct TrainingTable {
  std::string title;
  std::string note;  ///< what was trained
  kernels::bench::Provenance provenance;
  int machine_cores = 1;
  std::vector<TrainingRow> rows;
  std::vector<std::string> remarks;  ///< what was not measured, and why

  /// Samples per second, as a share of what that row's would be on as many cores; nothing without such a row.
  std::optional<double> efficiency(const TrainingRow& row) const;
  /// CPU seconds as a share of what all cores of the machine had during the training; nothing if not measured.
  std::optional<double> utilisation(const TrainingRow& row) const;
};

/// A column: heading of the text table, name and value in CSV and JSON.
struct TrainingColumn {
  std::string heading;
  std::string name;
  int digits = 0;    ///< behind the point
  double scale = 1;  ///< of the value in the text table
  std::function<std::optional<double>(const TrainingTable&, const TrainingRow&)> value;
};
const std::vector<TrainingColumn>& training_columns();

/// The table for a terminal; "-" where a number does not apply.
std::string to_text(const TrainingTable& table);
/// CSV: a line of names, then a line per row.
std::string to_csv(const TrainingTable& table);
/// Whether a file that begins with `head` is such CSV.
bool is_table(std::string_view head);
/// {"title": ..., "machine_cores": ..., "rows": [{"name": ..., "framework": ..., "command": [...], each column,
/// "seconds": [of each round], "losses": [...]}], "remarks": [...]}
nlohmann::ordered_json to_json(const TrainingTable& table, const TrainingTask& task);

}  // namespace gradring::train::bench
