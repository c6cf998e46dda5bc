// SPDX-License-Identifier: Apache-2.0
#include "train/cli/train_rank.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "data/datasets/open_dataset.h"
#include "train/config/usage_error.h"
#include "train/report/json_lines.h"
#include "train/report/line_file.h"
#include "train/report/progress.h"
#include "train/report/rank_log.h"
#include "train/report/run_directory.h"
#include "train/setup/compute.h"
#include "train/setup/make_group.h"
#include "train/setup/processors.h"
#include "train/setup/same_settings.h"
#include "train/trainer/trainer.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// What a rank trains with that needs no other rank, and where the results will go.
struct Setting {
  std::unique_ptr<data::Dataset> train_set;
  std::unique_ptr<data::Dataset> test_set;
  fs::path run_dir;  ///< rank 0's choice; the others hear of it
};

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
  const unsigned threads = threads_of_rank(config.threads, place, system_variable);
  if (config.pin) pin_to_own_cores(threads, place);
  return make_compute(
      {.device = config.device,
       .backend = config.backend,
       .conv = config.conv,
       .gemm = config.gemm,
       .autotune = config.autotune,
       .reproducible = config.reproducible,
       .threads = threads,
       .share_choice = [&ranks](const nn::Chooser& choose) { return choice_of_rank_0(*ranks.group, choose); },
       .local_rank = place.local_rank});
}

Setting prepare(const TrainConfig& config, const WorkerEnvironment& place) {
  Setting setting;
  if (place.rank == 0) {
    setting.run_dir = fs::absolute(run_dir_for(config));
    check_new_run_dir(setting.run_dir);
  }
  setting.train_set = data::open_dataset(config.dataset, data::Split::train, config.data_dir);
  setting.test_set = data::open_dataset(config.dataset, data::Split::test, config.data_dir);
  check_batch_size(config, *setting.train_set);
  return setting;
}

/// Rank 0's files and its words to the person; every rank's log, which it returns.
RankLog& open_reports(const TrainConfig& config, const fs::path& run_dir, int rank, MetricsFan& metrics) {
  if (rank == 0) {
    metrics.add(std::make_unique<JsonLinesSink>(run_dir / "metrics.jsonl"));
    metrics.add(make_progress(config.progress, stdout));
  }
  auto log = std::make_unique<RankLog>(log_file(run_dir, rank));
  RankLog& opened = *log;
  metrics.add(std::move(log));
  return opened;
}

void print_result(const Summary& summary, const fs::path& run_dir) {
  fmt::print(
      "Test accuracy  {:.2f} %\nTraining time  {:.1f} s, {:.0f} samples a second on {} rank{}\nRun directory  {}\n",
      100 * summary.accuracy, summary.seconds, summary.samples_per_second, summary.world_size,
      summary.world_size == 1 ? "" : "s", run_dir.string());
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

void train_rank(const TrainConfig& config, const WorkerEnvironment& place, RankKeeps& keeps) {
  keeps.compute = prepare_compute(config, place, keeps.ranks);
  const Compute& compute = keeps.compute;
  const Setting setting = prepare(config, place);
  keeps.ranks = make_group(place,
                           {.timeout = config.timeout,
                            .comm = config.allreduce == "nccl" ? "nccl" : config.comm,
                            .allow_shared_gpu = config.allow_shared_gpu},
                           &compute);
  comm::ProcessGroup& group = *keeps.ranks.group;
  check_same_settings(group, config);
  MetricsFan metrics;
  Trainer trainer(config, {.device = *compute.device,
                           .kernels = compute.kernels,
                           .backend = *compute.backend,
                           .group = group,
                           .train_set = *setting.train_set,
                           .test_set = *setting.test_set,
                           .metrics = metrics});
  if (place.rank == 0) make_run_dir(setting.run_dir, config);
  const fs::path run_dir = group.broadcast_on_host(setting.run_dir.string(), 0);
  RankLog& log = open_reports(config, run_dir, place.rank, metrics);
  log.say(fmt::format("rank {} of {}, process {}: {} by {}", place.rank, place.world_size, ::getpid(),
                      compute.device->description(), compute.backend->name()));
  for (const std::string& remark : compute.remarks) log.say(remark);

  const Summary summary = run_logged(trainer, log);
  if (place.rank != 0) return;
  write_file_whole(run_dir / "summary.json", summary.to_json());
  if (config.progress != "none") print_result(summary, run_dir);
}

void dry_run(const TrainConfig& config, const WorkerEnvironment& place) {
  const Ranks nobody;  // asked for no choice: nothing is planned
  const Compute compute = prepare_compute(config, place, nobody);
  const Setting setting = prepare(config, place);
  if (place.rank != 0) return;
  fmt::print("{}: {} training and {} test samples of {}; {} by {}; nothing was trained (--dry-run)\n",
             setting.train_set->name(), setting.train_set->size(), setting.test_set->size(),
             setting.train_set->shape().to_string(), compute.device->description(), compute.backend->name());
}

}  // namespace gradring::train
