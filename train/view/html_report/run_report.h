// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <variant>

#include "train/view/html_report/model_pictures.h"
#include "train/view/runs/run.h"

namespace gradring::train {

/// Why there is no picture of a model: its checkpoint or the dataset is missing.
struct NoPictures {
  std::string reason{};
};

/// A run and what a report says about it besides its events.
struct ReportedRun {
  Run run{};
  std::variant<NoPictures, ModelPictures> pictures{};
  std::string command{};  ///< the shell command that starts the run
};

/// The page of one run, or of several: then configuration differences first, and their curves in one plot.
///
/// Shapes    at least one run.
/// Returns   HTML, which needs no other file and no script.
std::string html_report(std::span<const ReportedRun> runs);

}  // namespace gradring::train
