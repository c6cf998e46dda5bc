// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_allreduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "comm/bench/all_reduce_bench.h"
#include "comm/bench/gloo_peer.h"
#include "kernels/runtime/host/host_device.h"
#include "train/bench/find_python.h"
#include "train/cli/bench_allreduce_options.h"
#include "train/cli/bench_allreduce_table.h"
#include "train/cli/bench_file.h"
#include "train/cli/standard_output.h"
#include "train/config/usage_error.h"
#include "train/launch/launcher.h"
#include "train/launch/run_folder.h"
#include "train/launch/worker_environment.h"
#include "train/report/environment_error.h"
#include "train/setup/make_group.h"

namespace gradring::train {
namespace {

using comm::bench::Payload;
using kernels::bench::statistics_of;

constexpr int kDefaultRanks = 2;
/// How often gradring and its peer take turns at one size.
constexpr int kTurns = 3;

/// PyTorch's gloo beside the ranks, and the folder where its ranks meet.
class Peer {
 public:
  Peer(comm::ProcessGroup& group, std::chrono::milliseconds timeout) {
    std::string python, store;
    if (group.rank() == 0) {
      const PythonSearch search = search_python_with_torch();
      python = search.python.value_or("");
      reason_ = search.to_string();
      folder_ = std::make_unique<RunFolder>();
      store = (folder_->path() / "gloo").string();
    }
    const comm::bench::GlooPeerSpec spec{.python = group.broadcast_on_host(python, 0),
                                         .store_file = group.broadcast_on_host(store, 0),
                                         .timeout = timeout};
    const std::string reason = group.broadcast_on_host(reason_, 0);
    if (spec.python.empty()) throw EnvironmentError("--compare gloo: " + reason);
    gloo_ = std::make_unique<comm::bench::GlooPeer>(group, spec);
  }

  comm::bench::GlooPeer& gloo() { return *gloo_; }

 private:
  std::string reason_;
  std::unique_ptr<RunFolder> folder_;  // rank 0's
  std::unique_ptr<comm::bench::GlooPeer> gloo_;
};

double percent_of_variation(const std::vector<double>& times, double mean) {
  double squares = 0;
  for (const double time : times) squares += (time - mean) * (time - mean);
  return 100 * std::sqrt(squares / static_cast<double>(times.size())) / mean;
}

void append(std::vector<double>& all, const std::vector<double>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

AllReduceRow measure(comm::bench::AllReduceBench& bench, Peer* peer, const AllReduceBenchOptions& options,
                     std::size_t bytes) {
  const Payload payload{.elements = bytes / size_of(options.dtype), .dtype = options.dtype};
  AllReduceRow row{.elements = payload.elements, .bytes = payload.bytes(), .ours = {}};
  if (options.check) row.wrong = bench.wrong_elements(payload);
  std::vector<double> ours, theirs;
  for (int turn = 0; turn < (peer ? kTurns : 1); ++turn) {
    append(ours, bench.seconds(payload, options.repetitions));
    if (peer) append(theirs, peer->gloo().seconds(payload.bytes(), options.repetitions));
  }
  row.ours = statistics_of(ours);
  row.coefficient_of_variation = percent_of_variation(ours, row.ours.mean);
  if (peer) row.gloo = statistics_of(theirs);
  return row;
}

void say(int rank, const std::string& text) {
  if (rank != 0) return;
  fmt::print("{}", text);
  flush_standard_output();
}

void be_rank(const AllReduceBenchOptions& options, const WorkerEnvironment& place) {
  const Ranks ranks = make_group(place, {.timeout = options.timeout, .comm = options.comm});
  comm::ProcessGroup& group = *ranks.group;
  kernels::HostDevice device;
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  comm::bench::AllReduceBench bench(group, *stream, *std::ranges::max_element(options.sizes), options.algorithm);
  std::optional<Peer> peer;
  if (options.compare_gloo) peer.emplace(group, options.timeout);

  AllReduceReport report{.provenance = kernels::bench::provenance(), .world_size = group.world_size()};
  if (peer) report.peer = peer->gloo().name();
  say(place.rank, table_head(report, options));
  for (const std::size_t bytes : options.sizes) {
    report.rows.push_back(measure(bench, peer ? &*peer : nullptr, options, bytes));
    say(place.rank, table_row(report.rows.back(), report, options));
  }
  say(place.rank, table_foot(report, options));
  if (place.rank == 0) write_bench_file(options.json, "allreduce", report.provenance, results_of(report, options));
  group.barrier_on_host();  // nobody leaves while another still reads
  if (report.wrong() > 0) throw Error(fmt::format("{} sums were wrong", report.wrong()));
}

/// The workers get the same words, and the launcher says what went wrong with them.
void spawn(const AllReduceBenchOptions& options, std::span<const std::string> args) {
  std::vector<std::string> command = {"bench", "allreduce"};
  command.insert(command.end(), args.begin(), args.end());
  const int code = spawn_ranks(options.nproc ? options.nproc : kDefaultRanks, command);
  if (code != 0) std::exit(code);
}

}  // namespace

void bench_allreduce(std::span<const std::string> args) {
  const AllReduceBenchOptions options = parse_bench_allreduce(args);
  if (options.help) {
    fmt::print("{}", bench_allreduce_help());
    return;
  }
  if (!system_variable("RANK")) return spawn(options, args);
  const auto place = WorkerEnvironment::from_environment(system_variable);
  if (options.nproc && options.nproc != place.world_size)
    throw UsageError(
        fmt::format("--nproc is {}, but the launcher started {} ranks: leave it out", options.nproc, place.world_size));
  be_rank(options, place);
}

}  // namespace gradring::train
