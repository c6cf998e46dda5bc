// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "comm/bench/all_reduce_bench.h"
#include "comm/bench/gloo_peer.h"
#include "kernels/bench/statistics.h"
#include "kernels/host/host_device.h"
#include "train/bench/commands/allreduce_options.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/cli/standard_output.h"
#include "train/doctor/find_python.h"
#include "train/launch/launcher.h"
#include "train/launch/run_folder.h"
#include "train/launch/worker_environment.h"
#include "train/options/usage_error.h"
#include "train/report/environment_error.h"
#include "train/setup/rendezvous.h"

namespace gradring::train {
namespace {

/// Result for one size; times in seconds.
struct AllReduceRow {
  std::size_t elements = 0;
  std::size_t bytes = 0;
  kernels::bench::Statistics ours;
  double coefficient_of_variation = 0;  ///< of our times, in percent
  std::optional<kernels::bench::Statistics> gloo{};
  std::optional<std::size_t> wrong{};  ///< elements, over all ranks

  double ratio() const { return gloo->median / ours.median; }
};

/// Results of a run of the benchmark.
struct AllReduceReport {
  kernels::bench::Provenance provenance;
  int world_size = 1;
  std::string peer{};  ///< "gloo of torch 1.13.0"; empty without comparison
  std::vector<AllReduceRow> rows{};

  std::size_t wrong() const;
  double average_bus_bandwidth() const;  ///< GB/s
};

using comm::bench::algorithm_bandwidth;
using comm::bench::bus_bandwidth;

constexpr double kMicro = 1e-6;
constexpr double kGiga = 1e9;

const char* medium_of(const AllReduceBenchOptions& options) { return options.comm == "tcp" ? "tcp" : "shm"; }

double bus_gigabytes(const AllReduceRow& row, const AllReduceReport& report) {
  return bus_bandwidth(row.bytes, row.ours.median, report.world_size) / kGiga;
}

std::size_t AllReduceReport::wrong() const {
  std::size_t all = 0;
  for (const AllReduceRow& row : rows) all += row.wrong.value_or(0);
  return all;
}

double AllReduceReport::average_bus_bandwidth() const {
  double sum = 0;
  for (const AllReduceRow& row : rows) sum += bus_gigabytes(row, *this);
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

std::string table_head(const AllReduceReport& report, const AllReduceBenchOptions& options) {
  std::string names = "#       size         count      type   redop    root     time   algbw   busbw  #wrong";
  std::string units = "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)        ";
  if (options.report_iterations) {
    names += "    i_min     i_p50     i_p95     i_p99     i_max    i_cv";
    units += "     (us)      (us)      (us)      (us)      (us)     (%)";
  }
  if (options.compare_gloo) {
    names += "      gloo   ratio";
    units += "      (us)        ";
  }
  return fmt::format(
      "# Collective test starting: gradring bench allreduce\n# {}\n"
      "# {} ranks over {}, in-place, warmup iters: {} iters: {}{} validation: {}{}\n#\n{}\n{}\n",
      to_string(report.provenance), report.world_size, medium_of(options), options.repetitions.warmups,
      options.repetitions.iterations, options.repetitions.fresh ? " on fresh data" : "", options.check ? 1 : 0,
      report.peer.empty() ? "" : "; in turns with " + report.peer, names, units);
}

std::string table_row(const AllReduceRow& row, const AllReduceReport& report, const AllReduceBenchOptions& options) {
  const kernels::bench::Statistics& ours = row.ours;
  std::string text = fmt::format("{:>12} {:>13} {:>9} {:>7} {:>7} {:>8.2f} {:>7.2f} {:>7.2f} {:>7}", row.bytes,
                                 row.elements, name_of(options.dtype), "sum", -1, ours.median / kMicro,
                                 algorithm_bandwidth(row.bytes, ours.median) / kGiga, bus_gigabytes(row, report),
                                 row.wrong ? std::to_string(*row.wrong) : "N/A");
  if (options.report_iterations)
    text += fmt::format(" {:>8.2f}  {:>8.2f}  {:>8.2f}  {:>8.2f}  {:>8.2f} {:>7.1f}", ours.least / kMicro,
                        ours.median / kMicro, ours.p95 / kMicro, ours.p99 / kMicro, ours.most / kMicro,
                        row.coefficient_of_variation);
  if (row.gloo) text += fmt::format("  {:>8.1f} {:>6.1f}x", row.gloo->median / kMicro, row.ratio());
  return text + "\n";
}

std::string table_foot(const AllReduceReport& report, const AllReduceBenchOptions& options) {
  const std::string wrong =
      options.check ? fmt::format("{} {}", report.wrong(), report.wrong() == 0 ? "OK" : "FAILED") : "not checked";
  return fmt::format("# Out of bounds values : {}\n# Avg bus bandwidth    : {:.4g}\n", wrong,
                     report.average_bus_bandwidth());
}

nlohmann::json results_of(const AllReduceReport& report, const AllReduceBenchOptions& options) {
  nlohmann::json rows = nlohmann::json::array();
  for (const AllReduceRow& row : report.rows) {
    nlohmann::json line = {{"size", row.bytes},
                           {"count", row.elements},
                           {"type", name_of(options.dtype)},
                           {"redop", "sum"},
                           {"root", -1},
                           {"in_place_microseconds", to_json(row.ours, 1 / kMicro)},
                           {"algbw_gb_s", algorithm_bandwidth(row.bytes, row.ours.median) / kGiga},
                           {"busbw_gb_s", bus_gigabytes(row, report)}};
    if (row.wrong) line["wrong"] = *row.wrong;
    if (row.gloo) line.update({{"gloo_microseconds", to_json(*row.gloo, 1 / kMicro)}, {"ratio", row.ratio()}});
    rows.push_back(line);
  }
  return {{"ranks", report.world_size},
          {"comm", medium_of(options)},
          {"warmups", options.repetitions.warmups},
          {"iterations", options.repetitions.iterations},
          {"fresh", options.repetitions.fresh},
          {"peer", report.peer},
          {"rows", rows}};
}

using comm::bench::Payload;
using kernels::bench::statistics_of;

constexpr int kDefaultRanks = 2;
/// Alternations of gradring and its peer at one size.
constexpr int kTurns = 3;

/// PyTorch's gloo, one process per rank, and the folder of its store.
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

void run_rank(const AllReduceBenchOptions& options, const WorkerEnvironment& place) {
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
  group.barrier_on_host();  // a rank that exits early would break a slower one's reads
  if (report.wrong() > 0) throw Error(fmt::format("{} sums were wrong", report.wrong()));
}

/// Starts the ranks with the same arguments; the launcher reports their errors.
void spawn(const AllReduceBenchOptions& options, std::span<const std::string> args) {
  std::vector<std::string> command = {"bench", "allreduce"};
  command.insert(command.end(), args.begin(), args.end());
  const int code = spawn_ranks(options.nproc ? options.nproc : kDefaultRanks, command);
  if (code != 0) std::exit(code);
}

int run(Arguments args) {
  const auto parsed = parse_bench_allreduce(args);
  if (!parsed) return kOk;
  const AllReduceBenchOptions& options = *parsed;
  if (!system_variable("RANK")) {
    spawn(options, args);
    return kOk;
  }
  const auto place = WorkerEnvironment::from_environment(system_variable);
  if (options.nproc && options.nproc != place.world_size)
    throw UsageError(fmt::format("--nprocs is {}, but the launcher started {} ranks: leave it out", options.nproc,
                                 place.world_size));
  run_rank(options, place);
  return kOk;
}

}  // namespace

const Command kBenchAllReduce{.name = "allreduce",
                              .help = "correctness and speed of all-reduce between processes",
                              .run = run,
                              .describe = bench_allreduce_line};

}  // namespace gradring::train
