// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "train/html_report/run_report.h"

namespace gradring::train {

/// The command that starts the run again, its configuration and environment, as HTML.
std::string settings_of(const ReportedRun& reported);

/// How the configurations of several runs differ, as an HTML table.
std::string config_differences_of(std::span<const ReportedRun> runs);

}  // namespace gradring::train
