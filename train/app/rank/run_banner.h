// SPDX-License-Identifier: Apache-2.0
// What a run prints before its first and after its last step.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "train/app/rank/run_output.h"
#include "train/core/config/train_config.h"
#include "train/core/setup/resume_command.h"
#include "train/core/trainer/training_progress.h"
#include "train/records/metrics/console.h"
#include "train/records/metrics/run_events.h"
#include "train/records/metrics/summary.h"
#include "train/records/metrics/terminal_look.h"
#include "train/view/runs/run.h"

namespace gradring::train {

/// A line of a block: a label, and what it names.
struct BannerRow {
  std::string label;
  std::string text;
};

/// The start of a run: model, data, device, ranks, steps, planned memory, run directory, and `resumed_from`, a
/// checkpoint, unless it is empty.
std::vector<BannerRow> start_rows(const RunHeader& header, const std::filesystem::path& run_dir,
                                  const std::filesystem::path& resumed_from);

/// The results of a run: accuracy and loss, the best checkpoint, time, memory, the hash of the weights, the run
/// directory.
std::vector<BannerRow> result_rows(const Summary& summary, const RunFigures& figures,
                                   const std::filesystem::path& run_dir);

/// The usual next steps: the label says what for, the text is a shell command for the run directory as a person types
/// it. A new command that takes a run is a row here.
std::vector<BannerRow> next_steps(const StartedBy& started_by, const TrainConfig& config, const TrainingEnd& end,
                                  const std::filesystem::path& run_dir);

/// How to train a finished run longer: "to train longer, ...".
std::string longer_advice(const TrainConfig& config, const TrainingEnd& end);

/// Rows with their texts below each other, wrapped between words to `columns` (0: not).
std::string aligned(const std::vector<BannerRow>& rows, std::size_t columns, const TextLook& look);

/// A finished run, and where the commands for it run.
struct FinishedRun {
  const Summary& summary;
  const TrainConfig& config;
  TrainingEnd end{};
  RunFigures figures{};  ///< as other processes read them from its directory
  StartedBy started_by;
  std::filesystem::path run_dir;    ///< absolute
  std::filesystem::path shown_dir;  ///< as a person types it
};

FinishedRun finished_run(const Summary& summary, const TrainConfig& config, const TrainingEnd& end,
                         const StartedBy& started_by, const RunOutput& output);

/// Prints start_rows.
void print_start(Console& out, const RunHeader& header, const std::filesystem::path& run_dir,
                 const std::filesystem::path& resumed_from);

/// Prints result_rows and next_steps.
void print_result(Console& out, const FinishedRun& run);

/// Prints that the run had already finished, and its results.
void print_finished(Console& out, const FinishedRun& run);

}  // namespace gradring::train
