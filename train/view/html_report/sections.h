// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/records/metrics/run_history.h"
#include "train/view/html_report/model_pictures.h"
#include "train/view/html_report/run_report.h"
#include "train/view/runs/run.h"

namespace gradring::train {

// The parts of a report's page, as HTML: each is in the source that its comment names.

// overview.cpp

/// What a run is called: --name, or the name of its directory. Plain text.
std::string title_of(const Run& run);
/// Whether it runs, finished, stopped or failed, as a badge.
std::string state_badge(const Run& run);
/// Title, state and reason, what was trained on what, warnings, and key figures.
std::string overview_of(const ReportedRun& reported);
/// The table of several runs.
std::string comparison_of(std::span<const ReportedRun> runs);

// timeline.cpp

/// The run on the axis of wall time: when it trained, evaluated and saved, its faults and restarts.
std::string timeline_of(const RunHistory& history);

// curves.cpp

/// Charts of the steps of runs, a figure each: loss, accuracy, learning rate, gradient norm, throughput. One run has its
/// faults and restarts in them; several share each plot.
///
/// Shapes    runs and names: equally many.
std::vector<std::string> curves_of(std::span<const Run* const> runs, std::span<const std::string> names);
/// Loss scale and skipped steps, or a sentence if the loss was not scaled and no step skipped.
std::string loss_scale_of(const Run& run);

// step_split.cpp

/// Where rank 0's step time goes, as a bar of means and areas over the run: data, forward, backward, exposed
/// communication, optimizer, the rest. Parts that the events lack are in the rest.
std::string step_split(const RunHistory& history);

// ranks.cpp

/// The table of ranks, with the straggler (train/view/runs/rank_means.h) marked and the rule stated.
std::string ranks_table(const RunHistory& history);

// memory.cpp

/// Planned and measured memory by class, a table with bars.
std::string memory_table(const RunHistory& history);

// predictions.cpp

/// Confusion matrix, worst misclassified samples and filters.
std::string predictions_of(const ModelPictures& pictures);

// settings.cpp

/// The command that starts the run again, its configuration and environment.
std::string settings_of(const ReportedRun& reported);
/// How the configurations of several runs differ, as a table.
std::string config_differences_of(std::span<const ReportedRun> runs);

}  // namespace gradring::train
