// SPDX-License-Identifier: Apache-2.0
#include "train/app/commands/rank_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "kernels/base/commit.h"
#include "train/core/setup/run_directory.h"
#include "train/core/setup/run_settings.h"
#include "train/core/setup/saved_schedule.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/training_state.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// Rank 0 chooses for all.
std::string choice_of_rank_0(comm::ProcessGroup& group, const nn::Chooser& choose) {
  return group.broadcast_on_host(group.rank() == 0 ? choose() : std::string(), 0);
}

Checkpoint without_tensors(const Checkpoint& checkpoint) {
  return {.step = checkpoint.step, .model = {}, .state = {}, .about = checkpoint.about, .score = checkpoint.score};
}

/// A remark if the next step has another learning rate than in the run that saved the checkpoint.
std::string rate_change(const Checkpoint& saved, const fs::path& from, const TrainConfig& config,
                        const Trainer& trainer) {
  if (trainer.is_over()) return {};
  try {
    const kernels::step_state::StepState state = from_checkpoint(saved, from).replica.step;
    return describe_rate_change(
        {.before = saved_schedule(saved, saved_config(saved, from)),
         .now = {.spec = config.schedule, .peak = config.learning_rate, .steps = trainer.planned_steps()},
         .applied = state.applied_steps,
         .steps = trainer.progress().steps});
  } catch (const CheckpointError&) {  // without settings, as other programs write it
    return {};
  }
}

}  // namespace

Compute prepare_compute(const TrainConfig& config, const WorkerEnvironment& environment, const Ranks& ranks) {
  const unsigned threads = threads_of_device(config, environment, system_variable);
  if (config.pin) pin_to_own_cores(threads * static_cast<unsigned>(config.data_parallel), environment);
  ComputeSpec spec = compute_spec(config, threads, environment.local_rank);
  spec.share_choice = [&ranks](const nn::Chooser& choose) { return choice_of_rank_0(*ranks.group, choose); };
  return make_compute(spec);
}

std::vector<Compute> prepare_further(const TrainConfig& config, const WorkerEnvironment& environment, Compute& first) {
  step_sizes(config, environment.world_size);  // refuses --data-parallel on several ranks
  std::vector<Compute> further =
      make_further_devices(compute_spec(config, first.threads, environment.local_rank), first, config.data_parallel);
  if (!further.empty())
    first.remarks.push_back(fmt::format("data parallel over {} devices, {} to {}: the first updates the weights",
                                        config.data_parallel, first.device->id().to_string(),
                                        further.back().device->id().to_string()));
  return further;
}

GroupSpec group_spec(const TrainConfig& config) {
  return {.timeout = config.timeout,
          .comm = config.allreduce == "nccl" ? "nccl" : config.comm,
          .allow_shared_gpu = config.allow_shared_gpu,
          .program = fmt::format("gradring {}, commit {}", GRADRING_VERSION, kCommit)};
}

OwnFiles own_files(const TrainConfig& config, const WorkerEnvironment& environment, const Datasets& sets) {
  if (environment.world_size == 1) return {};
  OwnFiles own{.data = same_data(config, sets)};
  PosixFileSystem files;
  if (resumes_automatically(config)) own.newest_step = newest_step(files, *named_run_dir(config.run_dir));
  return own;
}

std::vector<std::string> check_ranks_agree(comm::ProcessGroup& group, const TrainConfig& config, const Compute& compute,
                                           const OwnFiles& own) {
  std::vector<Agreement> agreements = {same_options(config), same_cpu_level(recorded_cpu_level(*compute.device))};
  std::ranges::copy(own.data, std::back_inserter(agreements));
  agreements.push_back(same_paths(config));
  std::vector<std::string> remarks = agree(group, agreements);
  if (resumes_automatically(config)) check_no_later_checkpoint(group, own.newest_step, *named_run_dir(config.run_dir));
  return remarks;
}

void begin_training(Trainer& trainer, const TrainConfig& config, comm::ProcessGroup& group, Start& start) {
  const Checkpoint saved = start.resume ? without_tensors(start.resume->checkpoint) : Checkpoint();
  const std::string choice = start.resume ? "resume" : start.weights ? "weights" : "draw";
  const std::string agreed = group.broadcast_on_host(choice, 0);
  if (agreed == "weights")
    std::ranges::move(trainer.begin_with(start.weights ? std::move(*start.weights) : FirstWeights()),
                      std::back_inserter(start.remarks));
  if (agreed != "resume") return;
  const fs::path from = start.resume ? start.resume->from : fs::path();
  trainer.resume(start.resume ? std::move(*start.resume) : ResumePoint());
  if (!start.resume) return;
  for (const std::string& change :
       {step_change(saved, config, group.world_size()), rate_change(saved, from, config, trainer)})
    if (!change.empty()) start.remarks.push_back(change);
}

}  // namespace gradring::train
