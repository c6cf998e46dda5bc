// SPDX-License-Identifier: Apache-2.0
#include "train/cli/rank_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "train/setup/run_settings.h"
#include "train/trainer/from_config.h"
#include "train/trainer/training_state.h"

namespace gradring::train {
namespace {

/// Rank 0 chooses for all.
std::string choice_of_rank_0(comm::ProcessGroup& group, const nn::Chooser& choose) {
  return group.broadcast_on_host(group.rank() == 0 ? choose() : std::string(), 0);
}

}  // namespace

Compute prepare_compute(const TrainConfig& config, const WorkerEnvironment& place, const Ranks& ranks) {
  const unsigned threads = threads_of_device(config, place, system_variable);
  if (config.pin) pin_to_own_cores(threads * static_cast<unsigned>(config.data_parallel), place);
  ComputeSpec spec = compute_spec(config, threads, place.local_rank);
  spec.share_choice = [&ranks](const nn::Chooser& choose) { return choice_of_rank_0(*ranks.group, choose); };
  return make_compute(spec);
}

std::vector<Compute> prepare_further(const TrainConfig& config, const WorkerEnvironment& place, Compute& first) {
  step_sizes(config, place.world_size);  // refuses --data-parallel on several ranks
  std::vector<Compute> further =
      make_further_devices(compute_spec(config, first.threads, place.local_rank), first, config.data_parallel);
  if (!further.empty())
    first.remarks.push_back(fmt::format("data parallel over {} devices, {} to {}: the first updates the weights",
                                        config.data_parallel, first.device->id().to_string(),
                                        further.back().device->id().to_string()));
  return further;
}

GroupSpec group_spec(const TrainConfig& config) {
  return {.timeout = config.timeout,
          .comm = config.allreduce == "nccl" ? "nccl" : config.comm,
          .allow_shared_gpu = config.allow_shared_gpu};
}

void begin_training(Trainer& trainer, const TrainConfig& config, comm::ProcessGroup& group, Start& start) {
  if (start.resume) {
    const std::string change = step_change(start.resume->checkpoint, config, group.world_size());
    if (!change.empty()) start.remarks.push_back(change);
  }
  const std::string choice = start.resume ? "resume" : start.weights ? "weights" : "draw";
  const std::string agreed = group.broadcast_on_host(choice, 0);
  if (agreed == "resume") trainer.resume(start.resume ? std::move(*start.resume) : ResumePoint());
  if (agreed == "weights")
    std::ranges::move(trainer.begin_with(start.weights ? std::move(*start.weights) : FirstWeights()),
                      std::back_inserter(start.remarks));
}

}  // namespace gradring::train
