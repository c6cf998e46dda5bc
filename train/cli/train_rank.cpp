// SPDX-License-Identifier: Apache-2.0
#include "train/cli/train_rank.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "data/datasets/open_dataset.h"
#include "train/checkpoint/checkpoint_writer.h"
#include "train/config/usage_error.h"
#include "train/faults/injected_faults.h"
#include "train/launch/progress_file.h"
#include "train/report/json_lines.h"
#include "train/report/line_file.h"
#include "train/report/progress.h"
#include "train/report/rank_log.h"
#include "train/report/run_directory.h"
#include "train/setup/compute.h"
#include "train/setup/make_group.h"
#include "train/setup/named_checkpoint.h"
#include "train/setup/processors.h"
#include "train/setup/same_settings.h"
#include "train/setup/start.h"
#include "train/setup/step_change.h"
#include "train/trainer/cpu_code.h"
#include "train/trainer/from_config.h"
#include "train/trainer/trainer.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// What a rank trains with that needs no other rank, and where the results will go.
struct Setting {
  std::unique_ptr<data::Dataset> train_set;
  std::unique_ptr<data::Dataset> test_set;
  fs::path run_dir;  ///< rank 0's choice, as is
  Start start;       ///< the others hear of both
};

PosixFileSystem& files_of_this_machine() {
  static PosixFileSystem files;
  return files;
}

void check_batch_size(const TrainConfig& config, const data::Dataset& train_set) {
  if (config.batch_size > train_set.size())
    throw UsageError(fmt::format("--batch-size is {}, but {} has {} training samples: lower it", config.batch_size,
                                 train_set.name(), train_set.size()));
}

/// Rank 0 chooses for all.
std::string choice_of_rank_0(comm::ProcessGroup& group, const nn::Chooser& choose) {
  return group.broadcast_on_host(group.rank() == 0 ? choose() : std::string(), 0);
}

Compute prepare_compute(const TrainConfig& config, const WorkerEnvironment& place, const Ranks& ranks) {
  const unsigned threads = threads_of_rank(threads_option(config), place, system_variable);
  if (config.pin) pin_to_own_cores(threads, place);
  ComputeSpec spec = compute_spec(config, threads, place.local_rank);
  spec.share_choice = [&ranks](const nn::Chooser& choose) { return choice_of_rank_0(*ranks.group, choose); };
  return make_compute(spec);
}

Setting prepare(const TrainConfig& config, const WorkerEnvironment& place) {
  Setting setting;
  if (place.rank == 0) {
    setting.run_dir = fs::absolute(run_dir_for(config));
    setting.start = find_start(config, setting.run_dir, files_of_this_machine());
  }
  setting.train_set = data::open_dataset(config.dataset, data::Split::train, config.data_dir);
  setting.test_set = data::open_dataset(config.dataset, data::Split::test, config.data_dir);
  check_batch_size(config, *setting.train_set);
  return setting;
}

/// Rank 0's files and its words to the person; every rank's log, which it returns.
RankLog& open_reports(const TrainConfig& config, const fs::path& run_dir, int rank, MetricsFan& metrics) {
  if (rank == 0) {
    metrics.add(std::make_unique<JsonLinesSink>(metrics_of(run_dir)));
    metrics.add(make_progress(config.progress, stdout));
  }
  auto log = std::make_unique<RankLog>(log_file(run_dir, rank));
  RankLog& opened = *log;
  metrics.add(std::move(log));
  return opened;
}

/// Lets the trainer begin where rank 0 says.
void begin(Trainer& trainer, const TrainConfig& config, comm::ProcessGroup& group, Start& start) {
  if (start.resume) {
    const std::string change = step_change(start.resume->checkpoint, config, group.world_size());
    if (!change.empty()) start.remarks.push_back(change);
  }
  const std::string choice = start.resume ? "resume" : start.weights ? "weights" : "draw";
  const std::string agreed = group.broadcast_on_host(choice, 0);
  if (agreed == "resume") trainer.resume(start.resume ? std::move(*start.resume) : ResumePoint());
  if (agreed == "weights") trainer.begin_with(start.weights ? std::move(*start.weights) : FirstWeights());
}

/// Rank 0's alone.
void open_run_dir(const TrainConfig& config, const Setting& setting, const TrainingProgress& progress) {
  if (!setting.start.in_place) return make_run_dir(setting.run_dir, config);
  continue_run_dir(setting.run_dir, config, progress.steps, progress.epoch);
  CheckpointDirectory(files_of_this_machine(), checkpoints_of(setting.run_dir)).abandon_after(progress.steps);
}

std::unique_ptr<CheckpointSink> make_checkpoints(const TrainConfig& config, const fs::path& run_dir,
                                                 const WorkerEnvironment& place) {
  if (place.rank != 0) return nullptr;
  const Retention retention{.keep_last = static_cast<int>(config.keep_last),
                            .keep_best = static_cast<int>(config.keep_best)};
  return std::make_unique<CheckpointWriter>(
      CheckpointDirectory(files_of_this_machine(), checkpoints_of(run_dir), retention),
      [file = place.progress_file](std::int64_t step) { write_progress(file, step); });
}

/// Rank 0 reads what it has saved.
std::function<std::optional<ResumePoint>(std::vector<std::string>&)> reader_of_checkpoints(const fs::path& run_dir,
                                                                                           int rank) {
  if (rank != 0) return nullptr;
  return [folder = checkpoints_of(run_dir)](std::vector<std::string>& remarks) {
    return newest_checkpoint(files_of_this_machine(), folder, remarks);
  };
}

void print_start(const TrainConfig& config, const Compute& compute, int ranks) {
  fmt::print("Training       {} on {}, {} rank{}, {} by {}\n", config.model, config.dataset, ranks,
             ranks == 1 ? "" : "s", compute.device->description(), compute.backend->name());
  std::fflush(stdout);
}

constexpr double kMebibyte = 1024 * 1024;

void print_result(const Summary& summary, const fs::path& run_dir) {
  fmt::print(
      "Test accuracy  {:.2f} %\nTraining time  {:.1f} s, {:.0f} samples a second on {} rank{}\n"
      "Device memory  {:.1f} MiB a rank at most, {:.1f} MiB planned\nRun directory  {}\n",
      100 * summary.accuracy, summary.seconds, summary.samples_per_second, summary.world_size,
      summary.world_size == 1 ? "" : "s", static_cast<double>(summary.peak_memory.total()) / kMebibyte,
      static_cast<double>(summary.planned_memory.total()) / kMebibyte, run_dir.string());
}

FaultedWorld faulted_world(const TrainConfig& config, const WorkerEnvironment& place, const kernels::Device& device) {
  return {.world_size = place.world_size,
          .attempt = place.restart_count,
          .recorded = config.cuda_graph && device.id().kind == kernels::DeviceKind::cuda};
}

Summary run_logged(Trainer& trainer, RankLog& log) {
  try {
    return trainer.run();
  } catch (const std::exception& error) {
    log.say(fmt::format("stopped: {}", error.what()));
    throw;
  }
}

}  // namespace

void train_rank(const TrainConfig& config, const WorkerEnvironment& place, RunRequests& requests, RankKeeps& keeps) {
  keeps.compute = prepare_compute(config, place, keeps.ranks);
  const Compute& compute = keeps.compute;
  Setting setting = prepare(config, place);
  keeps.ranks = make_group(place,
                           {.timeout = config.timeout,
                            .comm = config.allreduce == "nccl" ? "nccl" : config.comm,
                            .allow_shared_gpu = config.allow_shared_gpu},
                           &compute);
  comm::ProcessGroup& group = *keeps.ranks.group;
  check_same_settings(group, config, cpu_code(*compute.device));
  MetricsFan metrics;
  const auto checkpoints = make_checkpoints(config, setting.run_dir, place);
  InjectedFaults faults(config.faults, faulted_world(config, place, *compute.device), place.rank, requests,
                        *compute.backend);
  Trainer trainer(config, {.device = *compute.device,
                           .kernels = compute.kernels,
                           .backend = faults.backend(),
                           .group = group,
                           .train_set = *setting.train_set,
                           .test_set = *setting.test_set,
                           .metrics = metrics,
                           .checkpoints = checkpoints.get(),
                           .requests = &faults.requests(),
                           .newest_checkpoint = reader_of_checkpoints(setting.run_dir, place.rank)});
  begin(trainer, config, group, setting.start);
  if (place.rank == 0) open_run_dir(config, setting, trainer.progress());
  const fs::path run_dir = group.broadcast_on_host(setting.run_dir.string(), 0);
  RankLog& log = open_reports(config, run_dir, place.rank, metrics);
  log.say(fmt::format("rank {} of {}, process {}{}: {} by {}", place.rank, place.world_size, ::getpid(),
                      place.launcher.empty() ? "" : ", started by " + place.launcher, compute.device->description(),
                      compute.backend->name()));
  for (const std::string& remark : compute.remarks) log.say(remark);
  for (const std::string& remark : setting.start.remarks) metrics.remark(remark);
  for (const std::string& remark : faults.remarks()) metrics.remark(remark);
  if (const auto steps = trainer.progress().steps) log.say(fmt::format("goes on behind step {}", steps));

  if (place.rank == 0 && config.progress != "none") print_start(config, compute, place.world_size);
  const Summary summary = run_logged(trainer, log);
  for (const std::string& remark : faults.closing_remarks()) fmt::print(stderr, "gradring train: {}\n", remark);
  if (place.rank != 0) return;
  write_file_whole(run_dir / "summary.json", summary.to_json());
  if (config.progress != "none") print_result(summary, run_dir);
}

void dry_run(const TrainConfig& config, const WorkerEnvironment& place) {
  const Ranks nobody;  // asked for no choice: nothing is planned
  const Compute compute = prepare_compute(config, place, nobody);
  const Setting setting = prepare(config, place);
  // What is wrong with options that only device, data and ranks together can tell.
  memory_plan_spec(config, *compute.device, *setting.train_set, place.world_size);
  plan_faults(config.faults, faulted_world(config, place, *compute.device));
  if (place.rank != 0) return;
  fmt::print("{}: {} training and {} test samples of {}; {} by {}; nothing was trained (--dry-run)\n",
             setting.train_set->name(), setting.train_set->size(), setting.test_set->size(),
             setting.train_set->shape().to_string(), compute.device->description(), compute.backend->name());
}

}  // namespace gradring::train
