// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "kernels/runtime/error.h"
#include "train/launch/places/places.h"

namespace gradring::train {
namespace {

/// In a pod, RANK without LOCAL_RANK is the pod's.
bool counts_pods(const VariableReader& variables) {
  return variables.has("KUBERNETES_SERVICE_HOST") && !variables.has("LOCAL_RANK");
}

std::string name_of_launcher(const WorkerEnvironment& it, const VariableReader& variables) {
  if (!it.store_path.empty()) return "gradring launch";
  return variables.has("TORCHELASTIC_RUN_ID") ? "torchrun" : "hand (RANK and WORLD_SIZE)";
}

}  // namespace

std::optional<WorkerEnvironment> place_by_torchrun(const VariableReader& variables) {
  if (counts_pods(variables)) return std::nullopt;
  WorkerEnvironment it;
  const bool global = variables.place("RANK", "WORLD_SIZE", it.rank, it.world_size);
  const bool local = variables.place("LOCAL_RANK", "LOCAL_WORLD_SIZE", it.local_rank, it.local_world_size);
  if (local && !global)
    throw InvalidArgument("LOCAL_RANK is set but RANK is not: set RANK and WORLD_SIZE too, or none of them");
  if (!global) return std::nullopt;

  if (!local) {
    it.local_rank = it.rank;
    it.local_world_size = it.world_size;
  }
  if (it.local_world_size > it.world_size)
    throw InvalidArgument(
        fmt::format("LOCAL_WORLD_SIZE={} is more than WORLD_SIZE={}", it.local_world_size, it.world_size));
  it.role_rank = it.rank;
  it.role_world_size = it.world_size;
  variables.place("ROLE_RANK", "ROLE_WORLD_SIZE", it.role_rank, it.role_world_size);
  variables.place("GROUP_RANK", "GROUP_WORLD_SIZE", it.group_rank, it.group_world_size);
  it.role_name = variables.text("ROLE_NAME", it.role_name);
  it.max_restarts = variables.number("TORCHELASTIC_MAX_RESTARTS", 0, INT_MAX, 0);
  it.use_agent_store = variables.text("TORCHELASTIC_USE_AGENT_STORE", "") == "True";
  variables.read_common(it);
  it.launcher = name_of_launcher(it, variables);
  return it;
}

}  // namespace gradring::train
