// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "comm/groups.h"
#include "comm/host_channel.h"
#include "comm/rendezvous/file_store.h"
#include "comm/rendezvous/store.h"
#include "comm/sockets/handshake.h"
#include "comm/transport/error.h"
#include "comm/transports/shared_memory/shared_memory.h"
#include "kernels/base/deadline.h"
#include "kernels/base/host_name.h"
#include "train/core/setup/agreement.h"
#include "train/core/setup/tcp_rendezvous.h"
#include "train/launch/workers/worker_files.h"
#include "train/options/parse_value.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// For rank 0: many ranks may wait on few cores.
constexpr PollPace kPace = {
    .spins = 0, .first_nap = std::chrono::milliseconds(5), .longest_nap = std::chrono::milliseconds(80)};

bool on_gpu(const Compute* compute) { return compute && compute->device->id().kind == kernels::DeviceKind::cuda; }

/// The store of ranks on several machines is of one attempt only, and torchrun's agents count restarts each for
/// themselves.
std::string name_of(const WorkerEnvironment& environment) {
  const bool over_tcp = environment.spans_nodes() && environment.store_path.empty();
  return over_tcp ? "train" : fmt::format("train-{}", environment.restart_count);
}

/// Of a run whose launcher provides a store, or of one machine.
comm::TcpGroupOptions tcp_options(const WorkerEnvironment& environment, const GroupSpec& spec) {
  comm::TcpGroupOptions options;
  options.rank = environment.rank;
  options.world_size = environment.world_size;
  options.timeout = spec.timeout;
  options.name = name_of(environment);
  if (!environment.node_address.empty()) options.address = environment.node_address;
  if (environment.store_path.empty()) return options;
  options.token = read_rank_token(environment.store_path);
  // Rank 0 must not draw one: it would go through the store, which agents send each other unencrypted.
  if (options.token.empty() && !environment.node_address.empty() && environment.spans_nodes())
    throw EnvironmentError(
        environment.store_path +
        " has no token for the ranks: the launcher writes one for each attempt; start the run again");
  return options;
}

/// Gradients are in host memory.
std::unique_ptr<comm::ProcessGroup> join_cpus(comm::Store& store, const WorkerEnvironment& environment,
                                              const GroupSpec& spec, const comm::TcpGroupOptions& tcp) {
  if (spec.comm == TransportKind::tcp || environment.spans_nodes()) return comm::make_tcp_group(store, tcp);
  return comm::make_shared_memory_group(store, {.rank = environment.rank,
                                                .world_size = environment.world_size,
                                                .timeout = spec.timeout,
                                                .name = name_of(environment)});
}

/// For host values. Shared memory between the ranks of one machine, so that no port is opened there.
std::unique_ptr<comm::Transport> make_control_transport(comm::Store& store, const WorkerEnvironment& environment,
                                                        const GroupSpec& spec, const comm::TcpGroupOptions& tcp) {
  if (environment.spans_nodes()) return comm::make_tcp_transport(store, tcp, "control");
  return comm::make_shared_memory_transport(
      store,
      {.rank = environment.rank, .world_size = environment.world_size, .name = name_of(environment) + "/control"},
      Deadline::after(spec.timeout));
}

std::unique_ptr<comm::Transport> make_gpu_transport(comm::Store& store, const WorkerEnvironment& environment,
                                                    const GroupSpec& spec, const Compute& compute,
                                                    comm::HostChannel& control) {
  if (environment.world_size == 1 && spec.comm == TransportKind::automatic)
    return comm::make_single_rank_transport(*compute.device);
  comm::NcclOptions options{
      .store = store, .device = *compute.device, .kernels = compute.kernels, .timeout = spec.timeout};
  options.rank = environment.rank;
  options.world_size = environment.world_size;
  options.name = name_of(environment);
  options.broadcast = [&control](const std::string& text) { return control.broadcast_text(text, 0); };
  options.allow_shared_gpu = spec.allow_shared_gpu;
  options.simulated_gpus = compute.simulator != nullptr;
  return compute.module->make_nccl_transport(options);
}

/// Gradients are in GPU memory and go through NCCL, host values through the control channel, which is there first: it
/// authenticates the ranks of other machines, and NCCL does not.
std::unique_ptr<comm::ProcessGroup> join_gpus(comm::Store& store, const WorkerEnvironment& environment,
                                              const GroupSpec& spec, const comm::TcpGroupOptions& tcp,
                                              const Compute& compute) {
  auto control =
      std::make_unique<comm::HostChannel>(make_control_transport(store, environment, spec, tcp), spec.timeout);
  auto data = make_gpu_transport(store, environment, spec, compute, *control);
  return std::make_unique<comm::ProcessGroup>(std::move(data), std::move(control), spec.timeout);
}

/// For a process that was to run alone: an earlier program, or the shell of a job, may have left a launcher's variables.
std::string advice_for_lone_rank(const WorkerEnvironment& environment) {
  if (environment.rank_variables.empty()) return "";
  return fmt::format("; the environment makes this process rank {} of {}, as started by {}: to run it alone, unset {}",
                     environment.rank, environment.world_size, environment.launcher,
                     fmt::join(environment.rank_variables, " "));
}

std::string gpus_of(const Compute& compute) { return compute.simulator ? "simulated GPUs" : "GPUs"; }

/// Ranks that connect in different ways would wait for each other: they compare this before, through the store.
RankFacts facts_of(const WorkerEnvironment& environment, const GroupSpec& spec, const Compute* compute) {
  const bool uses_tcp = spec.comm == TransportKind::tcp || environment.spans_nodes();
  const std::string transport = on_gpu(compute) ? fmt::format("NCCL between {}", gpus_of(*compute))
                                : uses_tcp      ? "TCP between CPUs"
                                                : "shared memory between CPUs";
  return {.rank = environment.rank,
          .host = host_name() + ", " + describe_process(spec.run_dir),
          .sections = {{.values = {{"the world size", std::to_string(environment.world_size)}}},
                       {.values = {{"the program", spec.program}}},
                       {.values = {{"the transport", transport}}}}};
}

RankFacts wait_for_rank_0(comm::Store& store, const std::string& key, const WorkerEnvironment& environment,
                          const GroupSpec& spec) {
  try {
    return RankFacts::parse(store.wait(key, Deadline::after(spec.timeout)));
  } catch (const comm::Timeout&) {
    throw comm::Timeout(
        {.rank = environment.rank, .peer = 0, .operation = "join"},
        fmt::format("rank {} of {} waited {} for rank 0 to join: start it with the same store, or raise "
                    "--timeout",
                    environment.rank, environment.world_size, show_duration(spec.timeout)));
  }
}

/// Errors    ReplicaError, but on rank 0, which does not wait for the others here.
void check_same_start(comm::Store& store, const WorkerEnvironment& environment, const GroupSpec& spec,
                      const Compute* compute) {
  const RankFacts mine = facts_of(environment, spec, compute);
  const std::string key = name_of(environment) + "/start";
  if (environment.rank == 0) return store.set(key, mine.to_text());
  const RankFacts ranks[] = {wait_for_rank_0(store, key, environment, spec), mine};
  constexpr const char* kAdvice[] = {"start all ranks with the same world size (WORLD_SIZE, SLURM_NTASKS)",
                                     "install the same build on every node",
                                     "give all ranks the same --device and --comm"};
  for (std::size_t section = 0; section < std::size(kAdvice); ++section) {
    const std::string differences =
        describe_differences(ranks, section, always(kAdvice[section] + advice_for_two_runs(environment)));
    if (!differences.empty()) throw_disagreement(differences);
  }
}

Ranks join(const WorkerEnvironment& environment, const GroupSpec& spec, const Compute* compute) try {
  Ranks ranks;
  comm::TcpGroupOptions tcp = tcp_options(environment, spec);
  if (environment.world_size == 1) {
    ranks.store = std::make_unique<comm::MemoryStore>();
  } else if (!environment.store_path.empty()) {
    ranks.store = std::make_unique<comm::FileStore>(environment.store_path, spec.timeout);
  } else if (environment.spans_nodes()) {
    TcpRendezvous found = join_over_tcp(environment, spec.timeout, system_variable, spec.run_dir);
    ranks.store = std::move(found.store);
    tcp.address = std::move(found.address);
    tcp.token = std::move(found.token);
  } else {
    const std::string run_dir = spec.run_dir.empty() ? "" : fs::absolute(spec.run_dir).lexically_normal().string();
    ranks.rendezvous = std::make_unique<RankRendezvous>(environment, Deadline::after(spec.timeout),
                                                        RunKey{given_token(system_variable), run_dir});
    ranks.store = ranks.rendezvous->open_store(spec.timeout);
  }
  if (environment.world_size > 1) check_same_start(*ranks.store, environment, spec, compute);
  ranks.group = on_gpu(compute) ? join_gpus(*ranks.store, environment, spec, tcp, *compute)
                                : join_cpus(*ranks.store, environment, spec, tcp);
  return ranks;
} catch (const comm::Timeout& error) {
  throw comm::Timeout(error.context(), error.what() + advice_for_lone_rank(environment));
}

}  // namespace

std::string advice_for_two_runs(const WorkerEnvironment& environment) {
  if (environment.world_size == 1 || !environment.store_path.empty()) return "";
  return "; if they are of two runs, give each run a GRADRING_RENDEZVOUS_PORT of its own";
}

RankRendezvous::RankRendezvous(const WorkerEnvironment& environment, Deadline deadline, const RunKey& run,
                               const PrivateFolder& links, const fs::path& parent)
    : rank_(environment.rank) {
  const auto key = comm::tcp::RunToken::from_secret(run.token).derive("gradring meet " + run.run_dir);
  const RunName name{.kind = "meet",
                     .run_id = environment.run_id,
                     .port = environment.rendezvous_port != 0 ? environment.rendezvous_port : environment.master_port,
                     .attempt = environment.restart_count,
                     .key = key.to_text().substr(0, 16)};
  if (rank_ == 0) {
    folder_.emplace(parent, run.run_dir);
    link_.emplace(links, name, *folder_);
    path_ = folder_->path();
    return;
  }
  fs::path taken;  // a folder in which another process is this rank: that of an earlier start, perhaps
  const auto joins = [&] {
    path_ = RunLink::follow(links, name).value_or("");
    if (path_.empty() || path_ == taken) return false;
    if (claims_rank()) return true;
    taken = path_;
    return false;
  };
  if (poll_until([&] { return joins() || !taken.empty(); }, deadline, kPace) && taken.empty()) return;
  const std::string who = fmt::format("rank {} of {}", rank_, environment.world_size);
  if (!taken.empty()) {
    if (poll_until(joins, Deadline::after(kSameRankDelay), kPace)) return;
    throw EnvironmentError(
        fmt::format("{} found that another process has joined the run of rank 0 ({}) as this rank: give each run a "
                    "GRADRING_RENDEZVOUS_PORT of its own, and each process a rank of its own",
                    who, RunFolder::owner(taken)));
  }
  if (const auto others = RunLink::others(links, name); !others.empty())
    throw EnvironmentError(
        fmt::format("{} ({}) waited for its rank 0, and found that of another run, or of one with another "
                    "GRADRING_TOKEN ({}): give all ranks the same token and --run-dir, and each run a "
                    "GRADRING_RENDEZVOUS_PORT of its own",
                    who, describe_process(run.run_dir), RunFolder::owner(others.front())));
  throw comm::Timeout({.rank = rank_, .peer = 0, .operation = "join"},
                      who +
                          " waited for rank 0, which did not connect: start it on this machine with the same "
                          "MASTER_PORT and TORCHELASTIC_RUN_ID, or raise --timeout");
}

bool RankRendezvous::claims_rank() const try {
  return claim_rank(*open_store(kSameRankDelay), rank_);
} catch (const Error&) {  // rank 0 has removed its folder
  return false;
}

std::unique_ptr<comm::Store> RankRendezvous::open_store(std::chrono::nanoseconds timeout) const {
  return std::make_unique<comm::FileStore>(store(), timeout, [rank = rank_, path = path_] {
    if (rank != 0 && !RunFolder::is_held(path))
      throw comm::PeerLost(
          {.rank = rank, .peer = 0, .operation = "join"},
          fmt::format("rank {} lost rank 0, which ended while the ranks joined: look at its log", rank));
  });
}

void check_comm(const WorkerEnvironment& environment, TransportKind comm, const Compute* compute) {
  if (on_gpu(compute) && (comm == TransportKind::shm || comm == TransportKind::tcp))
    throw UsageError(fmt::format("--comm {} transfers host memory, but gradients are on {}: leave --comm out",
                                 word_of(comm), compute->device->id().to_string()));
  if (!on_gpu(compute) && comm == TransportKind::nccl)
    throw UsageError(
        "--comm nccl and --allreduce nccl are for GPUs, but this rank computes on the CPU: leave them out");
  if (environment.spans_nodes() && comm == TransportKind::shm)
    throw UsageError("--comm shm connects ranks of one machine only: use --comm tcp");
}

Ranks make_group(const WorkerEnvironment& environment, const GroupSpec& spec, const Compute* compute) {
  check_comm(environment, spec.comm, compute);
  Ranks ranks = join(environment, spec, compute);
  const bool kept_by_rank_0 = environment.world_size > 1 && environment.store_path.empty();
  if (kept_by_rank_0) ranks.group->barrier_on_host();  // before rank 0 removes the store
  if (!on_gpu(compute)) {
    ranks.store.reset();  // not needed on CPUs; a killed rank then leaves no files
    ranks.rendezvous.reset();
  }
  return ranks;
}

}  // namespace gradring::train
