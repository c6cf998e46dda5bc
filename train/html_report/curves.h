// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/page/chart.h"
#include "train/runs/run.h"

namespace gradring::train {

/// Charts of the steps of runs, as HTML figures: loss, accuracy, learning rate, gradient norm, throughput. One run has
/// its faults and restarts in them; several share each plot.
///
/// Shapes    runs and names: equally many.
std::vector<std::string> curves_of(std::span<const Run* const> runs, std::span<const std::string> names);

/// Loss scale and skipped steps, or a sentence if the loss was not scaled and no step skipped.
std::string loss_scale_of(const Run& run);

/// Faults and restarts by step.
std::vector<page::Mark> marks_of(const Run& run);

}  // namespace gradring::train
