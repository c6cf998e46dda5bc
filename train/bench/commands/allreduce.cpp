// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "comm/bench/all_reduce_bench.h"
#include "comm/bench/gloo_peer.h"
#include "comm/groups.h"
#include "kernels/bench/statistics.h"
#include "kernels/host/host_device.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/allreduce_options.h"
#include "train/bench/commands/allreduce_table.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/bench/ranks.h"
#include "train/core/doctor/find_python.h"
#include "train/core/setup/compute.h"
#include "train/core/setup/rendezvous.h"
#include "train/launch/launcher.h"
#include "train/launch/workers/run_folder.h"
#include "train/launch/workers/worker_environment.h"
#include "train/options/exit_code.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/named_file.h"
#include "train/view/page/generator.h"

namespace gradring::train {
namespace {

using kernels::bench::statistics_of;

constexpr int kDefaultRanks = 2;
/// Alternations of gradring and its peer at one size.
constexpr int kTurns = 3;

/// PyTorch's gloo, one process per rank, and the folder of its store.
class Peer {
 public:
  Peer(comm::ProcessGroup& group, std::chrono::milliseconds timeout) {
    std::string python, store, reason;
    if (group.rank() == 0) {
      const PythonSearch search = search_python_with_torch();
      python = search.python.value_or("");
      reason = search.to_string();
      folder_ = std::make_unique<RunFolder>();
      store = (folder_->path() / "gloo").string();
    }
    const comm::bench::GlooPeerSpec spec{.python = group.broadcast_on_host(python, 0),
                                         .store_file = group.broadcast_on_host(store, 0),
                                         .timeout = timeout};
    reason = group.broadcast_on_host(reason, 0);
    if (spec.python.empty()) throw EnvironmentError("--compare gloo: " + reason);
    gloo_ = std::make_unique<comm::bench::GlooPeer>(group, spec);
  }

  comm::bench::GlooPeer& gloo() { return *gloo_; }

 private:
  std::unique_ptr<RunFolder> folder_;  // rank 0's
  std::unique_ptr<comm::bench::GlooPeer> gloo_;
};

double percent_of_variation(const std::vector<double>& times, double mean) {
  double squares = 0;
  for (const double time : times) squares += (time - mean) * (time - mean);
  return 100 * std::sqrt(squares / static_cast<double>(times.size())) / mean;
}

AllReduceRow measure(comm::bench::AllReduceBench& bench, Peer* peer, const AllReduceOptions& options,
                     std::size_t bytes) {
  const comm::bench::Payload payload{.elements = bytes / size_of(options.dtype), .dtype = options.dtype};
  AllReduceRow row{.elements = payload.elements, .bytes = payload.bytes(), .ours = {}};
  if (options.check) row.wrong = bench.wrong_elements(payload);
  std::vector<double> samples[2];  // ours, the peer's
  kernels::bench::in_turns(peer ? 2 : 1, kernels::bench::turns(peer ? kTurns : 1), [&](std::size_t side, int) {
    const auto seconds = side == 0 ? bench.seconds(payload, options.repetitions)
                                   : peer->gloo().seconds(payload.bytes(), options.repetitions);
    samples[side].insert(samples[side].end(), seconds.begin(), seconds.end());
    return seconds.size();
  });
  row.ours = statistics_of(samples[0]);
  row.coefficient_of_variation = percent_of_variation(samples[0], row.ours.mean);
  if (peer) row.gloo = statistics_of(samples[1]);
  return row;
}

/// What a rank measures with.
struct RankDevice {
  comm::ProcessGroup& group;
  kernels::Device& device;
  const Compute* compute = nullptr;  ///< null if ranks are threads

  bool on_gpu() const { return device.id().kind == kernels::DeviceKind::cuda; }
};

void say(int rank, const std::string& text) {
  if (rank != 0) return;
  print_text("{}", text);
  flush_standard_output();
}

void run_rank(const AllReduceOptions& options, const RankDevice& own) {
  comm::ProcessGroup& group = own.group;
  const int rank = group.rank();
  const double begin = bench::processor_seconds_of_process();
  std::optional<bench::BenchRun> run;
  if (rank == 0) run.emplace("allreduce", options.common.files, own.compute ? gpu_of(*own.compute) : std::nullopt);
  const auto stream = own.device.make_stream(kernels::StreamMode::in_place);
  comm::bench::AllReduceBench bench(group, *stream, *std::ranges::max_element(options.sizes), algorithm_of(options),
                                    own.on_gpu() ? &own.device : nullptr);
  std::optional<Peer> peer;
  if (options.compare_gloo()) peer.emplace(group, options.timeout);

  AllReduceReport report{.title = run ? run->title() : "", .world_size = group.world_size()};
  if (peer) report.peer = peer->gloo().name();
  if (own.compute)
    for (const std::string& remark : own.compute->remarks) say(rank, "# " + remark + "\n");
  say(rank, table_head(report, options));
  for (const std::size_t bytes : options.sizes) {
    report.rows.push_back(measure(bench, peer ? &*peer : nullptr, options, bytes));
    report.wrong += report.rows.back().wrong.value_or(0);
    say(rank, table_row(report.rows.back(), report, options));
  }
  say(rank, table_foot(report, options));
  peer.reset();
  const double others = options.in_process() ? 0 : bench::processor_seconds_of_others(group, begin);
  if (run) {
    run->add_processor_seconds(others);
    add_measurements(*run, report, options);
    if (!options.plot.empty()) write_named_file(options.plot, plot_of(report, options));
    run->finish(results_of(report, options));
  }
  group.barrier_on_host();  // a rank that exits early would break a slower one's reads
  if (report.wrong > 0) throw Error(fmt::format("{} sums were wrong", report.wrong));
}

/// This process as one of the ranks.
void run_as_process(const AllReduceOptions& options, const WorkerEnvironment& environment) {
  const Compute compute = make_compute({.device = options.device,
                                        .simulate_gpu = options.simulated.card,
                                        .simulate_seed = options.simulated.seed,
                                        .timeout = options.timeout,
                                        .local_rank = environment.local_rank});
  const Ranks ranks = make_group(
      environment, {.timeout = options.timeout, .comm = parse_choice<TransportKind>("comm", options.comm)}, &compute);
  run_rank(options, {*ranks.group, *compute.device, &compute});
  check_simulation(compute);
}

/// All ranks as threads of this process.
void run_in_process(const AllReduceOptions& options) {
  const int world_size = options.nproc ? options.nproc : kDefaultRanks;
  comm::InProcessHub hub(world_size, options.timeout);
  bench::run_as_threads(world_size, [&](int rank) {
    kernels::HostDevice device;
    const auto group = hub.join(rank);
    run_rank(options, {*group, device});
  });
}

/// Starts the ranks with the same arguments; the launcher reports their errors.
int spawn(const AllReduceOptions& options, Arguments args) {
  std::vector<std::string> command = {"bench", "allreduce"};
  command.insert(command.end(), args.begin(), args.end());
  return spawn_ranks(options.nproc ? options.nproc : kDefaultRanks, command);
}

int run(Arguments args, KeptAlive&) {
  AllReduceOptions options;
  if (!words_or_help(command_line(options), args)) return kOk;
  options.sizes = sizes_of(options);
  check_options(options);
  if (options.common.list) {
    list_transports(options);
    return kOk;
  }
  bench::check_files(options.common.files);
  check_output({.option = "--plot", .path = options.plot, .is_ours = page::is_picture}, options.common.files.replace);
  const bool is_rank = system_variable("RANK").has_value();
  if (options.in_process()) {
    if (is_rank) throw UsageError("--comm in-process starts its ranks itself: leave the launcher out");
    run_in_process(options);
    return kOk;
  }
  if (!is_rank) return spawn(options, args);
  const auto environment = WorkerEnvironment::from_environment(system_variable);
  if (options.nproc && options.nproc != environment.world_size)
    throw UsageError(fmt::format("--nprocs is {}, but the launcher started {} ranks: leave it out", options.nproc,
                                 environment.world_size));
  run_as_process(options, environment);
  return kOk;
}

}  // namespace

const Command kBenchAllReduce{.name = "allreduce",
                              .help = "correctness and speed of all-reduce between processes",
                              .run = run,
                              .describe = describe<AllReduceOptions>};

}  // namespace gradring::train
