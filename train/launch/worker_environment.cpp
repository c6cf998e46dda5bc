// SPDX-License-Identifier: Apache-2.0
#include "train/launch/worker_environment.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <thread>

#include "kernels/runtime/error.h"

namespace gradring::train {
namespace {

constexpr int kHighestPort = 65535;

int parse_number(const std::string& name, const std::string& text, int lowest, int highest) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < lowest || value > highest)
    throw InvalidArgument(
        highest == INT_MAX ? fmt::format("{}='{}' is not a whole number of {} or more", name, text, lowest)
                           : fmt::format("{}='{}' is not a whole number from {} to {}", name, text, lowest, highest));
  return value;
}

void read_number(const VariableLookup& lookup, const std::string& name, int lowest, int highest, int& value) {
  if (const auto text = lookup(name)) value = parse_number(name, *text, lowest, highest);
}

void read_text(const VariableLookup& lookup, const std::string& name, std::string& value) {
  if (auto text = lookup(name)) value = std::move(*text);
}

/// Reads a rank and the size of its world, which only make sense together. Returns whether they are set.
bool read_place(const VariableLookup& lookup, const std::string& rank_name, const std::string& size_name, int& rank,
                int& size) {
  const auto rank_text = lookup(rank_name);
  const auto size_text = lookup(size_name);
  if (!rank_text && !size_text) return false;
  if (!rank_text || !size_text)
    throw InvalidArgument(
        fmt::format("{0} is set but {1} is not: set both, or neither, or start the workers with `gradring launch`",
                    rank_text ? rank_name : size_name, rank_text ? size_name : rank_name));
  size = parse_number(size_name, *size_text, 1, INT_MAX);
  rank = parse_number(rank_name, *rank_text, 0, INT_MAX);
  if (rank >= size)
    throw InvalidArgument(
        fmt::format("{0}={1} is outside {2}={3}: ranks go from 0 to {4}", rank_name, rank, size_name, size, size - 1));
  return true;
}

}  // namespace

std::optional<std::string> system_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

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
  return variables;
}

WorkerEnvironment WorkerEnvironment::from_environment(const VariableLookup& lookup) {
  WorkerEnvironment it;
  const bool global = read_place(lookup, "RANK", "WORLD_SIZE", it.rank, it.world_size);
  const bool local = read_place(lookup, "LOCAL_RANK", "LOCAL_WORLD_SIZE", it.local_rank, it.local_world_size);
  if (local && !global)
    throw InvalidArgument("LOCAL_RANK is set but RANK is not: set RANK and WORLD_SIZE too, or none of them");
  if (!global) return it;

  if (!local) {
    it.local_rank = it.rank;
    it.local_world_size = it.world_size;
  }
  if (it.local_world_size > it.world_size)
    throw InvalidArgument(
        fmt::format("LOCAL_WORLD_SIZE={} is more than WORLD_SIZE={}", it.local_world_size, it.world_size));
  it.role_rank = it.rank;
  it.role_world_size = it.world_size;
  read_place(lookup, "ROLE_RANK", "ROLE_WORLD_SIZE", it.role_rank, it.role_world_size);
  read_place(lookup, "GROUP_RANK", "GROUP_WORLD_SIZE", it.group_rank, it.group_world_size);
  read_text(lookup, "ROLE_NAME", it.role_name);
  read_text(lookup, "MASTER_ADDR", it.master_addr);
  read_number(lookup, "MASTER_PORT", 0, kHighestPort, it.master_port);
  read_text(lookup, "TORCHELASTIC_RUN_ID", it.run_id);
  read_number(lookup, "TORCHELASTIC_RESTART_COUNT", 0, INT_MAX, it.restart_count);
  read_number(lookup, "TORCHELASTIC_MAX_RESTARTS", 0, INT_MAX, it.max_restarts);
  it.use_agent_store = lookup("TORCHELASTIC_USE_AGENT_STORE") == "True";
  read_text(lookup, "TORCHELASTIC_ERROR_FILE", it.error_file);
  read_text(lookup, "GRADRING_STORE", it.store_path);
  read_text(lookup, "GRADRING_PROGRESS_FILE", it.progress_file);
  return it;
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
