// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/html_report/run_report.h"

namespace gradring::train {

/// What a run is called: --name, or the name of its directory. Plain text.
std::string title_of(const Run& run);

/// Whether it runs, finished, stopped or failed, as an HTML badge.
std::string state_badge(const Run& run);

/// Title, state and reason, what was trained on what, warnings, and key figures.
std::string overview_of(const ReportedRun& reported);

/// The table of several runs.
std::string comparison_of(std::span<const ReportedRun> runs);

}  // namespace gradring::train
