// SPDX-License-Identifier: Apache-2.0
#include "train/launch/worker_environment.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "train/launch/detect.h"

namespace gradring::train {

Variables WorkerEnvironment::to_variables() const {
  Variables variables = {
      {"RANK", std::to_string(rank)},
      {"WORLD_SIZE", std::to_string(world_size)},
      {"LOCAL_RANK", std::to_string(local_rank)},
      {"LOCAL_WORLD_SIZE", std::to_string(local_world_size)},
      {"GROUP_RANK", std::to_string(group_rank)},
      {"GROUP_WORLD_SIZE", std::to_string(group_world_size)},
      {"ROLE_RANK", std::to_string(role_rank)},
      {"ROLE_WORLD_SIZE", std::to_string(role_world_size)},
      {"ROLE_NAME", role_name},
      {"MASTER_ADDR", master_addr},
      {"MASTER_PORT", std::to_string(master_port)},
      {"TORCHELASTIC_RUN_ID", run_id},
      {"TORCHELASTIC_RESTART_COUNT", std::to_string(restart_count)},
      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(max_restarts)},
      {"TORCHELASTIC_USE_AGENT_STORE", use_agent_store ? "True" : "False"},
  };
  if (!error_file.empty()) variables.emplace_back("TORCHELASTIC_ERROR_FILE", error_file);
  if (!store_path.empty()) variables.emplace_back("GRADRING_STORE", store_path);
  if (!progress_file.empty()) variables.emplace_back("GRADRING_PROGRESS_FILE", progress_file);
  if (!node_address.empty()) variables.emplace_back("GRADRING_NODE_ADDRESS", node_address);
  return variables;
}

WorkerEnvironment WorkerEnvironment::from_environment(const VariableLookup& lookup) {
  return detect_environment(lookup).value_or(WorkerEnvironment());
}

Variables default_variables(int local_world_size, int cores) {
  return {{"OMP_NUM_THREADS", std::to_string(std::max(1, cores / std::max(1, local_world_size)))},
          {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"}};
}

int usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof(cores), &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));  // more cores than a cpu_set_t holds
}

}  // namespace gradring::train
