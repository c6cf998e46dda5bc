// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "train/bench/measured_training.h"

namespace gradring::train::bench {

/// A table of trainings, in the order in which they were asked for; each has at least one round. The first row of one
/// core, with the same framework and precision, is what others scale from.
///
/// Units     seconds, samples per second, bytes; shares are from 0 to 1
struct TrainingTable {
  std::string title;      ///< of the benchmark
  std::string note;       ///< what was trained
  int machine_cores = 1;  ///< the usable processors of the machine
  std::vector<TrainingRow> rows;
  std::vector<std::string> remarks;  ///< what was not measured, and why

  /// Samples per second, as a share of what that row's would be on as many cores; nothing without such a row.
  std::optional<double> efficiency(const TrainingRow& row) const;
  /// CPU seconds as a share of what all cores of the machine had during the training; nothing if not measured.
  std::optional<double> utilisation(const TrainingRow& row) const;
};

/// The table for a terminal: a row for each training, with medians of its rounds; then the remarks. Times are in seconds,
/// memory is in MiB, shares are from 0 to 1, and "-" is where a column does not apply.
///
/// Example   tests/train/bench/training_table_test.cpp
std::string to_text(const TrainingTable& table);
/// The table for programs, in SI units and bytes; columns that do not apply to a row are missing there:
/// {"title": ..., "machine_cores": ..., "rows": [{"name": ..., "framework": ..., "command": [...], each column,
/// "seconds": [of each round], "losses": [...]}], "remarks": [...]}
nlohmann::ordered_json to_json(const TrainingTable& table, const TrainingTask& task);

}  // namespace gradring::train::bench
