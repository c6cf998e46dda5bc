// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/records/metrics/terminal_look.h"
#include "train/view/runs/live_run.h"
#include "train/view/runs/text_table.h"

namespace gradring::train {

enum class LineStyle : std::uint8_t { normal, strong, warning, error };

struct FrameLine {
  std::string text{};
  LineStyle style = LineStyle::normal;
};

/// A run at this moment, no larger than the terminal: what it trains, progress and time left, the curve of the loss,
/// and a row for each rank. If there are more ranks than rows, those that do not train normally come first.
std::vector<FrameLine> frame_of(const LiveRun& live, double now, TerminalSize size, Glyphs glyphs);

/// The same in one line, without the ranks.
std::string line_of(const LiveRun& live, double now);

}  // namespace gradring::train
