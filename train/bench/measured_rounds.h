// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "train/bench/training_table.h"

namespace gradring::train::bench {

/// A row to measure.
struct Contestant {
  TrainingLayout layout;
  std::string framework = "gradring";
  std::function<Measurement()> train;
};

/// Our training in this layout. It trains a single step first, which warms the machine up; the CPU seconds of that
/// command, start-up and evaluation, are subtracted from those of each later one.
///
/// Errors    as measure_training.
Contestant our_contestant(const TrainingLayout& layout, const TrainingTask& task, const std::filesystem::path& folder);

/// Trains in turns (a, b, a, b, ...), so that other load affects all rows alike. Says on stderr what it does.
std::vector<TrainingRow> measure_rounds(const std::vector<Contestant>& contestants, int rounds);

}  // namespace gradring::train::bench
