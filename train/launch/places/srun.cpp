// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>

#include "kernels/runtime/error.h"
#include "train/launch/places/places.h"

namespace gradring::train {
namespace {

constexpr int kFirstPort = 10'000;
constexpr int kPorts = 50'000;

/// "node[003-007,9],other" is node003.
std::string first_host(const std::string& list) {
  const auto bracket = list.find('[');
  if (bracket == std::string::npos || list.find(',') < bracket) return list.substr(0, list.find(','));
  const auto number_end = list.find_first_of("-,]", bracket);
  const auto close = list.find(']', bracket);
  if (number_end == std::string::npos || close == std::string::npos) return list;
  const auto tail_end = list.find(',', close);
  return list.substr(0, bracket) + list.substr(bracket + 1, number_end - bracket - 1) +
         list.substr(close + 1, tail_end == std::string::npos ? tail_end : tail_end - close - 1);
}

/// "2(x3),1": three nodes with two tasks each, then one with one. The tasks of `node`; 0 if the list does not say.
int tasks_of_node(const std::string& list, int node) {
  const char* at = list.data();
  const char* end = at + list.size();
  while (at < end) {
    int tasks = 0, nodes = 1;
    auto [stop, error] = std::from_chars(at, end, tasks);
    if (error != std::errc()) return 0;
    if (std::string_view(stop, static_cast<std::size_t>(end - stop)).starts_with("(x")) {
      stop = std::from_chars(stop + 2, end, nodes).ptr + 1;  // and ")"
    }
    if (node < nodes) return tasks;
    node -= nodes;
    at = stop + 1;  // ","
  }
  return 0;
}

/// A step has a number; the shell of a batch script has none, or one of the reserved ones at the top.
bool is_step(const std::string& id) {
  constexpr std::int64_t kFirstReserved = 0xffff'fff0;
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  return error == std::errc() && stop == id.data() + id.size() && number < kFirstReserved;
}

}  // namespace

std::optional<WorkerEnvironment> place_by_srun(const VariableReader& variables) {
  const std::string step = variables.text("SLURM_STEP_ID", "");
  WorkerEnvironment it{.launcher = "srun"};
  const char* size_name = variables.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  if (!is_step(step) || variables.number(size_name, 1, INT_MAX, 1) < 2) return std::nullopt;
  variables.place("SLURM_PROCID", size_name, it.rank, it.world_size);

  it.group_rank = variables.number("SLURM_NODEID", 0, INT_MAX, 0);
  it.group_world_size = variables.number("SLURM_STEP_NUM_NODES", 1, INT_MAX, it.group_rank + 1);
  it.local_rank = variables.number("SLURM_LOCALID", 0, INT_MAX, it.rank);
  it.local_world_size = tasks_of_node(variables.text("SLURM_STEP_TASKS_PER_NODE", ""), it.group_rank);
  if (it.local_world_size == 0)
    it.local_world_size = variables.number("SLURM_NTASKS_PER_NODE", 1, INT_MAX, it.world_size / it.group_world_size);
  if (it.local_rank >= it.local_world_size || it.group_rank >= it.group_world_size)
    throw InvalidArgument(fmt::format("SLURM_LOCALID={} of node {} is outside SLURM_STEP_TASKS_PER_NODE='{}'",
                                      it.local_rank, it.group_rank, variables.text("SLURM_STEP_TASKS_PER_NODE", "")));
  it.role_rank = it.rank;
  it.role_world_size = it.world_size;

  const int job = variables.number("SLURM_JOB_ID", 0, INT_MAX, 0);
  it.run_id = fmt::format("slurm-{}.{}", job, step);
  it.restart_count = variables.number("SLURM_RESTART_COUNT", 0, INT_MAX, 0);
  it.master_addr = first_host(variables.text("SLURM_STEP_NODELIST", it.master_addr));
  it.master_port = kFirstPort + job % kPorts;
  variables.read_common(it);
  return it;
}

}  // namespace gradring::train
