// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/view/html_report/run_report.h"

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

/// Faults of one kind and rank in consecutive steps, which are shown as one.
struct FaultGroup {
  std::string kind{};
  int rank = 0;
  double time = 0;  ///< of the first
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;

  /// "kill, rank 1", "10 x delay, rank 1"
  std::string label() const;
  /// The same with the steps.
  std::string label_with_steps() const;
};

/// In the order of steps.
std::vector<FaultGroup> fault_groups_of(const RunHistory& history);

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

/// Planned and measured memory by class, a table with bars.
std::string memory_table(const RunHistory& history);

// groups.cpp

/// The table of parameter groups; empty if all parameters are trained alike.
std::string groups_table(const RunHistory& history);

// predictions.cpp

/// Confusion matrix, worst misclassified samples and filters.
std::string predictions_of(const ModelPictures& pictures);

// settings.cpp

/// The command that starts the run again, its configuration and environment.
std::string settings_of(const ReportedRun& reported);
/// How the configurations of several runs differ, as a table.
std::string config_differences_of(std::span<const ReportedRun> runs);

}  // namespace gradring::train
