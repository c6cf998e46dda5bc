// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/view/runs/run.h"
#include "train/view/runs/sparkline.h"

namespace gradring::train {

/// One run in full, for a terminal of `width` columns: what it trains, its state, results, speed, times of each rank,
/// evaluations, starts and faults.
std::string description_of(const Run& run, std::size_t width, Glyphs glyphs);

/// The same as JSON, with the configuration; without the training steps.
nlohmann::ordered_json full_json(const Run& run);

}  // namespace gradring::train
