// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// The headings of the table's numbers, and a row's numbers; "-" where one does not apply.
std::vector<std::string> training_headings();
std::vector<std::string> training_cells(const TrainingTable& table, const TrainingRow& row);

/// The table for a terminal.
std::string to_text(const TrainingTable& table);
/// CSV: a line of names, then a line per row.
std::string to_csv(const TrainingTable& table);
/// Whether a file that begins with `head` is such CSV.
bool is_table(std::string_view head);
/// {"title": ..., "machine_cores": ..., "rows": [{"name": ..., "framework": ..., "command": [...], each column,
/// "seconds": [of each round], "losses": [...]}], "remarks": [...]}
nlohmann::ordered_json to_json(const TrainingTable& table, const TrainingTask& task);

}  // namespace gradring::train::bench
