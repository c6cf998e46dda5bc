// SPDX-License-Identifier: Apache-2.0
#include "train/cli/run_result.h"

#include <fmt/format.h>

#include "train/cli/exit_code.h"
#include "train/report/progress.h"
#include "train/trainer/on_nan.h"
#include "train/trainer/run_requests.h"

namespace gradring::train {
namespace {

constexpr double kMebibyte = 1024 * 1024;

}  // namespace

void print_start(Console& out, const TrainConfig& config, const Compute& compute, int ranks) {
  out.write(fmt::format("Training       {} on {}, {} rank{}, {} by {}\n", config.model, config.dataset, ranks,
                        ranks == 1 ? "" : "s", compute.device->description(), compute.backend->name()));
}

void print_result(Console& out, const Summary& summary, const std::filesystem::path& run_dir) {
  out.write(
      fmt::format("Test accuracy  {:.2f} %\nTraining time  {:.1f} s, {:.0f} samples a second on {} rank{}\n"
                  "Device memory  {:.1f} MiB a rank at most, {:.1f} MiB planned\nRun directory  {}\n",
                  100 * summary.accuracy, summary.seconds, summary.samples_per_second, summary.world_size,
                  summary.world_size == 1 ? "" : "s", static_cast<double>(summary.peak_memory.total()) / kMebibyte,
                  static_cast<double>(summary.planned_memory.total()) / kMebibyte, run_dir.string()));
}

void print_finished(Console& out, const Summary& summary, const std::filesystem::path& run_dir,
                    const std::string& progress) {
  make_progress(progress, out)
      ->remark(
          fmt::format("the run is already finished ({} steps): nothing was trained; to train longer, raise --epochs "
                      "or --steps",
                      summary.steps));
  if (progress == "none") return;
  out.write("Results of the finished run:\n");
  print_result(out, summary, run_dir);
}

Outcome outcome_of(const std::exception& error) {
  if (dynamic_cast<const Preempted*>(&error)) return Outcome::interrupted;
  return dynamic_cast<const DivergedError*>(&error) ? Outcome::diverged : Outcome::failed;
}

UnfinishedRun unfinished_run(const std::exception& error, const TrainingProgress& made, const TrainConfig& resolved,
                             int world_size) {
  return {.outcome = outcome_of(error),
          .reason = message_of(error),
          .steps = made.steps,
          .epoch = made.epoch,
          .seconds = made.seconds,
          .samples_per_second = made.seconds > 0 ? static_cast<double>(made.samples) / made.seconds : 0,
          .world_size = world_size,
          .device = resolved.device,
          .backend = resolved.backend,
          .precision = resolved.precision};
}

}  // namespace gradring::train
