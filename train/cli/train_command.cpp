// SPDX-License-Identifier: Apache-2.0
#include "train/cli/train_command.h"

#include <fmt/format.h>

#include <cstdio>

#include "data/datasets/open_dataset.h"
#include "train/cli/exit_code.h"
#include "train/cli/parse_train.h"
#include "train/config/usage_error.h"
#include "train/launch/error_file.h"
#include "train/launch/launcher.h"
#include "train/report/json_lines.h"
#include "train/report/line_file.h"
#include "train/report/progress.h"
#include "train/report/run_directory.h"
#include "train/setup/make_device.h"
#include "train/setup/make_group.h"
#include "train/trainer/trainer.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// Rank 0 writes files and talks to the person; the others are silent.
std::unique_ptr<MetricsSink> make_metrics(const TrainConfig& config, int rank, const fs::path& run_dir) {
  std::vector<std::unique_ptr<MetricsSink>> sinks;
  if (rank == 0) {
    sinks.push_back(std::make_unique<JsonLinesSink>(run_dir / "metrics.jsonl"));
    sinks.push_back(make_progress(config.progress, stdout));
  }
  return std::make_unique<MetricsFan>(std::move(sinks));
}

void print_result(const Summary& summary, const fs::path& run_dir) {
  fmt::print("Test accuracy  {:.2f} %\nTraining time  {:.1f} s, {:.0f} samples a second on {} rank{}\nRun directory  {}\n",
             100 * summary.accuracy, summary.seconds, summary.samples_per_second, summary.world_size,
             summary.world_size == 1 ? "" : "s", run_dir.string());
}

void run_rank(const TrainConfig& config, const WorkerEnvironment& place, bool dry_run) {
  const auto device = make_device(config.device, place, system_variable);
  const auto backend = make_backend(config.backend, *device);
  const auto train_set = data::open_dataset(config.dataset, data::Split::train, config.data_dir);
  const auto test_set = data::open_dataset(config.dataset, data::Split::test, config.data_dir);
  if (dry_run) {
    if (place.rank == 0)
      fmt::print("{}: {} training and {} test samples of {}; {} by {}; nothing was trained (--dry-run)\n",
                 train_set->name(), train_set->size(), test_set->size(), train_set->shape().to_string(),
                 device->description(), backend->name());
    return;
  }
  const auto group = make_group(place, config.timeout);
  const fs::path run_dir = config.run_dir.empty() ? default_run_dir(config) : fs::path(config.run_dir);
  if (place.rank == 0) make_run_dir(run_dir, config);
  const auto metrics = make_metrics(config, place.rank, run_dir);
  const auto kernels = kernels::kernel_set();
  Trainer trainer(config, {.device = *device,
                           .kernels = kernels,
                           .backend = *backend,
                           .group = *group,
                           .train_set = *train_set,
                           .test_set = *test_set,
                           .metrics = *metrics});
  const Summary summary = trainer.run();
  if (place.rank != 0) return;
  write_file_whole(run_dir / "summary.json", summary.to_json());
  if (config.progress != "none") print_result(summary, run_dir);
}

int spawn(const TrainConfig& config, std::span<const std::string> args) {
  std::vector<std::string> command = {"train"};
  command.insert(command.end(), args.begin(), args.end());
  command.insert(command.end(), {"--nprocs", "1"});
  return spawn_ranks(static_cast<int>(config.nprocs), command);
}

int train(std::span<const std::string> args, const WorkerEnvironment& place) {
  const ParsedTrain parsed = parse_train(args);
  if (!parsed.help.empty()) {
    fmt::print("{}", parsed.help);
    return kOk;
  }
  const ResolvedConfig resolved = resolve(parsed.options, system_variable, parsed.config_file);
  if (parsed.print_config) {
    if (place.rank == 0) fmt::print("{}", print_config(resolved));
    return kOk;
  }
  if (resolved.config.nprocs > 1 && system_variable("RANK"))
    throw UsageError("--nprocs spawns ranks, but this process is a rank already (RANK is set): leave --nprocs out");
  if (resolved.config.nprocs > 1) return spawn(resolved.config, args);
  run_rank(resolved.config, place, parsed.dry_run);
  return kOk;
}

}  // namespace

int train_main(std::span<const std::string> args) {
  WorkerEnvironment place;
  try {
    place = WorkerEnvironment::from_environment(system_variable);
    return train(args, place);
  } catch (const std::exception& error) {
    // A launcher that reads error files shows the message itself, once, at the end.
    if (!place.error_file.empty() && write_error_file(place.error_file, error.what())) return exit_code_of(error);
    fmt::print(stderr, "gradring train: {}\n", error.what());
    return exit_code_of(error);
  }
}

}  // namespace gradring::train
