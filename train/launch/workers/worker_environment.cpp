// SPDX-License-Identifier: Apache-2.0
#include "train/launch/workers/worker_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>

#include "kernels/base/error.h"

namespace gradring::train {
namespace {

/// Of ports that follow from a job: below Linux's ephemeral ports, which outgoing connections of any process have.
constexpr int kFirstJobPort = 10'000;
constexpr std::uint32_t kJobPorts = 20'000;
constexpr int kPyTorchJobPort = 23456;  // the operator's default

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

/// Reads environment variables and checks their values.
class VariableReader {
 public:
  explicit VariableReader(const VariableLookup& lookup) : lookup_(lookup) {}

  bool has(const std::string& name) const { return lookup_(name).has_value(); }
  std::string text(const std::string& name, std::string otherwise) const {
    return lookup_(name).value_or(std::move(otherwise));
  }
  int number(const std::string& name, int lowest, int highest, int otherwise) const {
    const auto text = lookup_(name);
    return text ? parse_number(name, *text, lowest, highest) : otherwise;
  }
  /// A rank and its world size, which must both be set or both unset. Returns whether they are set.
  bool rank_and_size(const std::string& rank_name, const std::string& size_name, int& rank, int& size) const {
    const auto rank_text = lookup_(rank_name);
    const auto size_text = lookup_(size_name);
    if (!rank_text && !size_text) return false;
    if (!rank_text || !size_text)
      throw InvalidArgument(
          fmt::format("{0} is set but {1} is not: unset {0}, which a batch script may have exported, or set both",
                      rank_text ? rank_name : size_name, rank_text ? size_name : rank_name));
    size = parse_number(size_name, *size_text, 1, kLargestWorld);
    rank = parse_number(rank_name, *rank_text, 0, INT_MAX);
    if (rank >= size)
      throw InvalidArgument(fmt::format("{0}={1} is outside {2}={3}: ranks go from 0 to {4}", rank_name, rank,
                                        size_name, size, size - 1));
    return true;
  }
  /// Those of `names` that are set.
  std::vector<std::string> set_among(std::initializer_list<const char*> names) const {
    std::vector<std::string> found;
    std::ranges::copy_if(names, std::back_inserter(found), [this](const char* name) { return has(name); });
    return found;
  }
  /// What any launcher may set.
  void read_common(WorkerEnvironment& it) const {
    if (has("MASTER_ADDR")) it.master_source.clear();
    it.master_addr = text("MASTER_ADDR", it.spans_nodes() && it.master_source.empty() ? "" : it.master_addr);
    it.master_port = number("MASTER_PORT", 0, kHighestPort, it.master_port);
    it.rendezvous_port = number("GRADRING_RENDEZVOUS_PORT", 1, kHighestPort, 0);
    it.run_id = text("TORCHELASTIC_RUN_ID", it.run_id);
    it.restart_count = number("TORCHELASTIC_RESTART_COUNT", 0, INT_MAX, it.restart_count);
    it.error_file = text("TORCHELASTIC_ERROR_FILE", "");
    it.store_path = text("GRADRING_STORE", "");
    it.progress_file = text("GRADRING_PROGRESS_FILE", "");
    it.node_address = text("GRADRING_NODE_ADDRESS", "");
  }

 private:
  const VariableLookup& lookup_;
};

/// In a pod, RANK without LOCAL_RANK is the pod's.
bool counts_pods(const VariableReader& variables) {
  return variables.has("KUBERNETES_SERVICE_HOST") && !variables.has("LOCAL_RANK");
}

std::string name_of_launcher(const WorkerEnvironment& it, const VariableReader& variables) {
  if (!it.store_path.empty()) return "gradring launch";
  return variables.has("TORCHELASTIC_RUN_ID") ? "torchrun" : "hand (RANK and WORLD_SIZE)";
}

/// A port for a job that names none: other jobs have others, most likely (FNV-1a).
int port_of_job(const std::string& job) {
  std::uint32_t hash = 2'166'136'261;
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 16'777'619;
  return kFirstJobPort + static_cast<int>(hash % kJobPorts);
}

/// "1.0;tcp://10.0.0.1,10.1.0.1:4000;tcp6://[fd00::1]:4001" is 10.0.0.1,10.1.0.1,fd00::1: the host of mpirun.
std::string hosts_of_uri(const std::string& uri) {
  std::string hosts;
  for (std::size_t at = 0; (at = uri.find("://", at)) != std::string::npos;) {
    at += 3;
    std::string list = uri.substr(at, uri.find(';', at) - at);
    list.resize(std::min(list.size(), list.rfind(':')));
    std::erase_if(list, [](char c) { return c == '[' || c == ']'; });
    hosts += (hosts.empty() ? "" : ",") + list;
  }
  return hosts;
}

/// "prterun-node-1-4711@1" is node-1: of Open MPI 5, the host of mpirun.
std::string host_of_namespace(const std::string& name) {
  const auto begin = name.find('-'), end = name.rfind('-');
  return name.starts_with("prte") && begin < end ? name.substr(begin + 1, end - begin - 1) : "";
}

/// Open MPI starts rank 0 on mpirun's host, unless it is told otherwise.
void read_host_of_mpirun(WorkerEnvironment& it, const VariableReader& variables) {
  constexpr const char *kUri = "OMPI_MCA_orte_hnp_uri", *kNamespace = "PMIX_NAMESPACE";
  std::string hosts = hosts_of_uri(variables.text(kUri, ""));
  it.master_source = hosts.empty() ? kNamespace : kUri;
  if (hosts.empty()) hosts = host_of_namespace(variables.text(kNamespace, ""));
  if (hosts.empty()) it.master_source.clear();
  it.master_addr = hosts;
  it.master_port = port_of_job(it.run_id);
}

/// The variables that one family of MPI sets.
struct MpiNames {
  const char *rank, *size, *local_rank, *local_size;
  const char* job;  ///< distinguishes runs
};

constexpr MpiNames kMpiFamilies[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "PMIX_NAMESPACE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_PORT"},
};

std::optional<WorkerEnvironment> detect_mpi_family(const MpiNames& names, const VariableReader& variables) {
  WorkerEnvironment it{.launcher = "mpirun"};
  // Slurm also sets PMI_RANK, but its own variables describe the nodes.
  if (!variables.has(names.local_rank)) return std::nullopt;
  if (!variables.rank_and_size(names.rank, names.size, it.rank, it.world_size)) return std::nullopt;
  variables.rank_and_size(names.local_rank, names.local_size, it.local_rank, it.local_world_size);
  // MPI does not count nodes. With equally many consecutive ranks on each, the node follows from the rank.
  if (it.world_size % it.local_world_size == 0) {
    it.group_world_size = it.world_size / it.local_world_size;
    it.group_rank = it.rank / it.local_world_size;
  }
  it.role_rank = it.rank;
  it.role_world_size = it.world_size;
  it.rank_variables = variables.set_among({names.rank, names.size, names.local_rank, names.local_size});
  it.run_id = variables.text(names.job, it.run_id);
  if (it.spans_nodes() && variables.has("OMPI_COMM_WORLD_RANK")) read_host_of_mpirun(it, variables);
  variables.read_common(it);
  return it;
}

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

/// The tasks of `node` by a list such as "2(x3),1": three nodes with two tasks each, then one with one. 0 if unknown.
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

/// The shell of a batch script has no step id, or one of the reserved ones at the top.
bool is_step(const std::string& id) {
  constexpr std::int64_t kFirstReserved = 0xffff'fff0;
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  return error == std::errc() && stop == id.data() + id.size() && number < kFirstReserved;
}

/// Whether rank 0 is reached at an address that other nodes have, too.
bool has_remote_master(const VariableReader& variables) {
  const std::string address = variables.text("MASTER_ADDR", "localhost");
  return !address.starts_with("localhost") && !address.starts_with("127.") && address != "::1" && address != "[::1]";
}

std::optional<WorkerEnvironment> detect_torchrun(const VariableReader& variables) {
  if (counts_pods(variables)) return std::nullopt;
  WorkerEnvironment it;
  const bool global = variables.rank_and_size("RANK", "WORLD_SIZE", it.rank, it.world_size);
  const bool local = variables.rank_and_size("LOCAL_RANK", "LOCAL_WORLD_SIZE", it.local_rank, it.local_world_size);
  if (local && !global)
    throw InvalidArgument("LOCAL_RANK is set but RANK is not: set RANK and WORLD_SIZE too, or none of them");
  if (!global) return std::nullopt;

  if (!local && !has_remote_master(variables)) {
    it.local_rank = it.rank;
    it.local_world_size = it.world_size;
  } else if (!local) {
    it.group_rank = it.rank;
    it.group_world_size = it.world_size;
  }
  if (it.local_world_size > it.world_size)
    throw InvalidArgument(
        fmt::format("LOCAL_WORLD_SIZE={} is more than WORLD_SIZE={}", it.local_world_size, it.world_size));
  it.role_rank = it.rank;
  it.role_world_size = it.world_size;
  variables.rank_and_size("ROLE_RANK", "ROLE_WORLD_SIZE", it.role_rank, it.role_world_size);
  variables.rank_and_size("GROUP_RANK", "GROUP_WORLD_SIZE", it.group_rank, it.group_world_size);
  it.role_name = variables.text("ROLE_NAME", it.role_name);
  it.max_restarts = variables.number("TORCHELASTIC_MAX_RESTARTS", 0, INT_MAX, 0);
  it.use_agent_store = variables.text("TORCHELASTIC_USE_AGENT_STORE", "") == "True";
  variables.read_common(it);
  it.launcher = name_of_launcher(it, variables);
  if (it.store_path.empty())
    it.rank_variables = variables.set_among({"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"});
  return it;
}

std::optional<WorkerEnvironment> detect_mpirun(const VariableReader& variables) {
  for (const MpiNames& names : kMpiFamilies)
    if (auto it = detect_mpi_family(names, variables)) return it;
  return std::nullopt;
}

std::optional<WorkerEnvironment> detect_slurm(const VariableReader& variables) {
  const std::string step = variables.text("SLURM_STEP_ID", "");
  WorkerEnvironment it{.launcher = "srun"};
  const char* size_name = variables.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  if (!is_step(step) || variables.number(size_name, 1, INT_MAX, 1) < 2) return std::nullopt;
  variables.rank_and_size("SLURM_PROCID", size_name, it.rank, it.world_size);

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

  it.rank_variables = {"SLURM_STEP_ID", "SLURM_PROCID", size_name};

  const int job = variables.number("SLURM_JOB_ID", 0, INT_MAX, 0);
  it.run_id = fmt::format("slurm-{}.{}", job, step);
  it.master_port = port_of_job(it.run_id);
  // A requeued job has the same steps: a rank on a lost node may still wait for rank 0 of the start before.
  it.restart_count = variables.number("SLURM_RESTART_COUNT", 0, INT_MAX, 0);
  if (it.restart_count > 0) it.run_id += fmt::format(".{}", it.restart_count);
  if (variables.has("SLURM_STEP_NODELIST")) {
    it.master_source = "SLURM_STEP_NODELIST";
    it.master_addr = first_host(variables.text(it.master_source, ""));
  }
  variables.read_common(it);
  return it;
}

/// A rank of mpirun or srun, unless RANK and WORLD_SIZE describe one of another world, or LOCAL_RANK is set, too. Batch
/// scripts for PyTorch export WORLD_SIZE, and even RANK=0, to all ranks.
std::optional<WorkerEnvironment> detect_with_exported_rank(const VariableReader& variables) {
  if (variables.has("LOCAL_RANK")) return std::nullopt;
  const bool is_whole = variables.has("RANK") && variables.has("WORLD_SIZE");
  for (const auto detect : {detect_mpirun, detect_slurm})
    if (auto it = detect(variables))
      if (!is_whole || variables.text("WORLD_SIZE", "") == std::to_string(it->world_size)) return it;
  return std::nullopt;
}

}  // namespace

std::optional<WorkerEnvironment> detect_environment(const VariableLookup& lookup) {
  const VariableReader variables(lookup);
  for (const auto detect : {detect_with_exported_rank, detect_torchrun, detect_mpirun, detect_slurm})
    if (auto environment = detect(variables)) return environment;
  return detect_pytorch_job(lookup);
}

std::optional<WorkerEnvironment> detect_pytorch_job(const VariableLookup& lookup) {
  const VariableReader variables(lookup);
  WorkerEnvironment it{.master_port = kPyTorchJobPort, .launcher = "PyTorchJob"};
  if (!variables.has("KUBERNETES_SERVICE_HOST") ||
      !variables.rank_and_size("RANK", "WORLD_SIZE", it.rank, it.world_size))
    return std::nullopt;
  it.group_rank = it.role_rank = it.rank;
  it.group_world_size = it.role_world_size = it.world_size;
  it.rank_variables = {"RANK", "WORLD_SIZE"};
  variables.read_common(it);
  return it;
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
  if (!node_address.empty()) variables.emplace_back("GRADRING_NODE_ADDRESS", node_address);
  return variables;
}

WorkerEnvironment WorkerEnvironment::from_environment(const VariableLookup& lookup) {
  return detect_environment(lookup).value_or(WorkerEnvironment());
}

Variables default_variables(int local_world_size, int processors) {
  return {{"OMP_NUM_THREADS", std::to_string(std::max(1, processors / std::max(1, local_world_size)))},
          {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"}};
}

}  // namespace gradring::train
