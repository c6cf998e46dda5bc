// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/bench/statistics.h"
#include "train/bench/measured_training.h"

namespace gradring::train::bench {

/// A table of trainings: the first row of one core, with the same framework and precision, is what others scale from.
struct TrainingTable {
  std::string title;
  std::string note;  ///< what was trained
  int machine_cores = 1;
  std::vector<TrainingRow> rows;
  std::vector<std::string> remarks;  ///< what was not measured, and why

  /// Samples per second, as a share of what that row's would be on as many cores; nothing without such a row.
  std::optional<double> efficiency(const TrainingRow& row) const;
  /// CPU seconds as a share of what all cores of the machine had during the training; nothing if not measured.
  std::optional<double> utilisation(const TrainingRow& row) const;
};

/// The table for a terminal.
std::string to_text(const TrainingTable& table);
/// {"title": ..., "machine_cores": ..., "rows": [{"name": ..., "framework": ..., "command": [...], each column,
/// "seconds": [of each round], "losses": [...]}], "remarks": [...]}
nlohmann::ordered_json to_json(const TrainingTable& table, const TrainingTask& task);

}  // namespace gradring::train::bench
