// SPDX-License-Identifier: Apache-2.0
#include "train/launch/worker_place.h"

#include <fmt/format.h>

#include <string_view>

#include "train/launch/signal_name.h"

namespace gradring::train {

NodePlace only_node(const LaunchOptions& options) {
  return {.world_size = options.nproc_per_node,
          .role_world_size = options.nproc_per_node,
          .master_addr = options.master_addr,
          .master_port = options.master_port};
}

WorkerEnvironment place_of(const LaunchOptions& options, const NodePlace& node, int local_rank, int attempt) {
  return {.rank = node.first_rank + local_rank,
          .world_size = node.world_size,
          .local_rank = options.virtual_local_rank ? 0 : local_rank,
          .local_world_size = options.nproc_per_node,
          .group_rank = node.node,
          .group_world_size = node.nodes,
          .role_rank = node.first_role_rank + local_rank,
          .role_world_size = node.role_world_size,
          .role_name = options.role,
          .master_addr = node.master_addr,
          .master_port = node.master_port,
          .run_id = options.run_id,
          .restart_count = attempt,
          .max_restarts = options.restarts.most};
}

std::vector<std::string> arguments_of(const LaunchOptions& options, int local_rank) {
  constexpr std::string_view kMacro = "${local_rank}";
  std::vector<std::string> arguments = options.arguments;
  for (std::string& text : arguments)
    for (auto at = text.find(kMacro); at != std::string::npos; at = text.find(kMacro, at))
      text.replace(at, kMacro.size(), std::to_string(local_rank));
  return arguments;
}

Variables run_variables(const LaunchOptions& options) {
  std::vector<std::string> names;
  for (const int signal : options.handled_signals) names.push_back(signal_name(signal));
  return {{"TORCHELASTIC_SIGNALS_TO_HANDLE", fmt::format("{}", fmt::join(names, ","))}};
}

Variables device_variables(const LaunchOptions& options, int local_rank) {
  if (options.devices.empty()) return {};
  if (options.virtual_local_rank)
    return {{"CUDA_VISIBLE_DEVICES", options.devices.at(static_cast<std::size_t>(local_rank))}};
  return {{"CUDA_VISIBLE_DEVICES", fmt::format("{}", fmt::join(options.devices, ","))}};
}

}  // namespace gradring::train
