// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "train/view/runs/run.h"
#include "train/view/runs/sparkline.h"

namespace gradring::train {

/// Runs side by side, a column for each: first the settings in which they differ, then their results. The best value of
/// a row is marked "*". Runs that do not fit beside each other in `width` columns follow below.
std::string comparison_of(std::span<const Run> runs, std::optional<std::size_t> width, Glyphs glyphs);

/// {"differences": [{"name", "values"}], "runs": [as runs ls --json]}
nlohmann::ordered_json comparison_json(std::span<const Run> runs);

}  // namespace gradring::train
