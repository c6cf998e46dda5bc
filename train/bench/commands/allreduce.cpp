// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/bench/all_reduce_bench.h"
#include "comm/bench/gloo_peer.h"
#include "comm/bench/host_bench.h"
#include "comm/groups.h"
#include "kernels/bench/statistics.h"
#include "kernels/host/host_device.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/allreduce_options.h"
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
#include "train/view/page/chart.h"
#include "train/view/page/generator.h"

namespace gradring::train {
namespace {

using kernels::bench::Statistics;
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

/// Result for one payload; times in seconds.
struct AllReduceRow {
  comm::bench::Payload payload;
  Statistics ours;
  double coefficient_of_variation = 0;  ///< of our times, in percent
  std::optional<Statistics> gloo{};
  std::optional<std::size_t> wrong{};  ///< elements, over all ranks

  double ratio() const { return gloo->median / ours.median; }
  double algorithm_gigabytes() const { return comm::bench::algorithm_bandwidth(payload.bytes(), ours.median) / 1e9; }
  double bus_gigabytes(int world_size) const {
    return comm::bench::bus_bandwidth(payload.bytes(), ours.median, world_size) / 1e9;
  }
};

/// Element type and reduction; "none" of a barrier, as nccl-tests prints where there is none.
std::string_view type_of(const AllReduceRow& row, const AllReduceOptions& options) {
  return options.is_barrier() ? "none" : name_of(row.payload.dtype);
}
std::string_view reduction_of(const AllReduceOptions& options) { return options.is_barrier() ? "none" : "sum"; }

/// Results of a run of the benchmark.
struct AllReduceReport {
  std::string title{};  ///< BenchRun::title, of rank 0
  int world_size = 1;
  std::string peer{};  ///< "gloo of torch 1.13.0"; empty without comparison
  std::vector<AllReduceRow> rows{};
  std::size_t wrong = 0;  ///< elements, over all sizes and ranks
};

double percent_of_variation(const std::vector<double>& times, double mean) {
  double squares = 0;
  for (const double time : times) squares += (time - mean) * (time - mean);
  return 100 * std::sqrt(squares / static_cast<double>(times.size())) / mean;
}

AllReduceRow measure(comm::bench::CollectiveBench& bench, Peer* peer, const AllReduceOptions& options,
                     const comm::bench::Payload& payload) {
  AllReduceRow row{.payload = payload, .ours = {}};
  if (options.check) row.wrong = bench.wrong_elements(payload);
  std::vector<double> samples[2];  // ours, the peer's
  kernels::bench::in_turns(peer ? 2 : 1, kernels::bench::turns(peer ? kTurns : 1), [&](std::size_t side, int) {
    const auto seconds = side == 0 ? bench.seconds(payload, options.repetitions)
                                   : peer->gloo().seconds(options.collective, payload.bytes(), options.repetitions);
    samples[side].insert(samples[side].end(), seconds.begin(), seconds.end());
    return seconds.size();
  });
  row.ours = statistics_of(samples[0]);
  row.coefficient_of_variation = percent_of_variation(samples[0], row.ours.mean);
  if (peer) row.gloo = statistics_of(samples[1]);
  return row;
}

/// The table of nccl-tests, in parts that are printed as they are measured.
std::string table_head(const AllReduceReport& report, const AllReduceOptions& options) {
  std::string title = report.title;
  for (std::size_t end = 0; (end = title.find('\n', end)) != title.npos; end += 3) title.replace(end, 1, "\n# ");
  std::string names = "#       size         count      type   redop    root     time   algbw   busbw  #wrong    noise";
  std::string units = "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)              (%)";
  if (options.report_iterations) {
    names += "    i_min     i_p50     i_p95     i_p99     i_max    i_cv";
    units += "     (us)      (us)      (us)      (us)      (us)     (%)";
  }
  if (options.compare_gloo()) {
    names += "      gloo   ratio";
    units += "      (us)        ";
  }
  return fmt::format(
      "# Collective test starting: gradring bench allreduce\n# {}\n"
      "# {} ranks over {}, {}, warmup iters: {} iters: {}{} validation: {}{}\n#\n{}\n{}\n",
      title, report.world_size, options.transport(), options.reduces_arrays() ? "in-place" : options.collective,
      options.repetitions.warmups, options.repetitions.iterations, options.repetitions.fresh ? " on fresh data" : "",
      options.check && !options.is_barrier() ? 1 : 0, report.peer.empty() ? "" : "; in turns with " + report.peer,
      names, units);
}

std::string table_row(const AllReduceRow& row, const AllReduceReport& report, const AllReduceOptions& options) {
  const Statistics& ours = row.ours;
  std::string text =
      fmt::format("{:>12} {:>13} {:>9} {:>7} {:>7} {:>8.2f} {:>7.2f} {:>7.2f} {:>7} {:>8.1f}", row.payload.bytes(),
                  row.payload.elements, type_of(row, options), reduction_of(options), -1, ours.median * kMicroseconds,
                  row.algorithm_gigabytes(), row.bus_gigabytes(report.world_size),
                  row.wrong ? std::to_string(*row.wrong) : "N/A", 100 * ours.noise());
  if (options.report_iterations)
    text += fmt::format(" {:>8.2f}  {:>8.2f}  {:>8.2f}  {:>8.2f}  {:>8.2f} {:>7.1f}", ours.least * kMicroseconds,
                        ours.median * kMicroseconds, ours.p95 * kMicroseconds, ours.p99 * kMicroseconds,
                        ours.most * kMicroseconds, row.coefficient_of_variation);
  if (row.gloo) text += fmt::format("  {:>8.1f} {:>6.1f}x", row.gloo->median * kMicroseconds, row.ratio());
  return text + "\n";
}

std::string table_foot(const AllReduceReport& report, const AllReduceOptions& options) {
  double sum = 0;
  for (const AllReduceRow& row : report.rows) sum += row.bus_gigabytes(report.world_size);
  const std::string wrong = options.check && !options.is_barrier()
                                ? fmt::format("{} {}", report.wrong, report.wrong == 0 ? "OK" : "FAILED")
                                : "not checked";
  return fmt::format("# Out of bounds values : {}\n# Avg bus bandwidth    : {:.4g}\n", wrong,
                     report.rows.empty() ? 0 : sum / static_cast<double>(report.rows.size()));
}

/// The bus bandwidth over the size in bytes, with the peer's, as SVG.
std::string plot_of(const AllReduceReport& report, const AllReduceOptions& options) {
  page::Series ours{.name = "gradring", .dots = true}, peer{.name = report.peer, .color = 1, .dots = true};
  for (const AllReduceRow& row : report.rows) {
    const auto bytes = static_cast<double>(row.payload.bytes());
    ours.x.push_back(bytes);
    ours.y.push_back(row.bus_gigabytes(report.world_size));
    if (!row.gloo) continue;
    peer.x.push_back(bytes);
    peer.y.push_back(comm::bench::bus_bandwidth(row.payload.bytes(), row.gloo->median, report.world_size) / 1e9);
  }
  page::Chart chart{.title = fmt::format("All-reduce of {} ranks over {}: bus bandwidth, GB/s", report.world_size,
                                         options.transport()),
                    .x_label = "bytes",
                    .y_unit = "GB/s",
                    .x_scale = page::ScaleKind::logarithmic,
                    .from_zero = true,
                    .series = {ours}};
  if (!peer.x.empty()) chart.series.push_back(std::move(peer));
  return page::svg_file(chart);
}

nlohmann::json results_of(const AllReduceReport& report, const AllReduceOptions& options) {
  nlohmann::json rows = nlohmann::json::array();
  for (const AllReduceRow& row : report.rows) {
    nlohmann::json line = {{"size", row.payload.bytes()},
                           {"count", row.payload.elements},
                           {"type", type_of(row, options)},
                           {"redop", reduction_of(options)},
                           {"root", -1},
                           {"in_place_microseconds", to_json(row.ours, kMicroseconds)},
                           {"algbw_gb_s", row.algorithm_gigabytes()},
                           {"busbw_gb_s", row.bus_gigabytes(report.world_size)}};
    if (row.wrong) line["wrong"] = *row.wrong;
    if (row.gloo) line.update({{"gloo_microseconds", to_json(*row.gloo, kMicroseconds)}, {"ratio", row.ratio()}});
    rows.push_back(line);
  }
  return {{"collective", options.collective},
          {"ranks", report.world_size},
          {"comm", options.transport()},
          {"warmups", options.repetitions.warmups},
          {"iterations", options.repetitions.iterations},
          {"fresh", options.repetitions.fresh},
          {"peer", report.peer},
          {"rows", rows}};
}

void add_measurements(bench::BenchRun& run, const AllReduceReport& report, const AllReduceOptions& options) {
  for (const AllReduceRow& row : report.rows) {
    bench::MeasurementKey key = {{"ranks", std::to_string(report.world_size)}, {"comm", options.transport()}};
    key = options.reduces_arrays() ? bench::joined(key, {{"algorithm", options.algorithm},
                                                         {"fresh", options.repetitions.fresh ? "yes" : "no"},
                                                         {"dtype", std::string(type_of(row, options))},
                                                         {"size", std::to_string(row.payload.bytes())}})
                                   : bench::joined(key, {{"collective", options.collective}});
    run.add(in_microseconds(bench::joined(key, {{"name", "gradring"}}), row.ours));
    if (row.gloo) run.add(in_microseconds(bench::joined(key, {{"name", "gloo"}}), *row.gloo));
  }
}

/// What a rank measures with.
struct RankDevice {
  comm::ProcessGroup& group;
  kernels::Device& device;
  const Compute* compute = nullptr;                ///< null if ranks are threads
  const WorkerEnvironment* environment = nullptr;  ///< null if ranks are threads

  bool on_gpu() const { return device.id().kind == kernels::DeviceKind::cuda; }
};

std::unique_ptr<comm::bench::CollectiveBench> make_bench(const AllReduceOptions& options, const RankDevice& own,
                                                         kernels::Stream& stream) {
  using namespace comm::bench;
  if (!options.reduces_arrays())
    return std::make_unique<HostBench>(own.group,
                                       options.is_barrier() ? HostCollective::barrier : HostCollective::agreement);
  return std::make_unique<AllReduceBench>(own.group, stream,
                                          std::ranges::max(options.payloads | std::views::transform(&Payload::bytes)),
                                          algorithm_of(options), own.on_gpu() ? &own.device : nullptr);
}

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
  const auto bench = make_bench(options, own, *stream);
  std::optional<Peer> peer;
  if (options.compare_gloo()) peer.emplace(group, options.timeout);

  AllReduceReport report{.title = run ? run->title() : "", .world_size = group.world_size()};
  if (peer) report.peer = peer->gloo().name();
  if (own.compute)
    for (const std::string& remark : own.compute->remarks) say(rank, "# " + remark + "\n");
  say(rank, table_head(report, options));
  for (const comm::bench::Payload& payload : options.payloads) {
    report.rows.push_back(measure(*bench, peer ? &*peer : nullptr, options, payload));
    report.wrong += report.rows.back().wrong.value_or(0);
    say(rank, table_row(report.rows.back(), report, options));
  }
  say(rank, table_foot(report, options));
  peer.reset();
  const double others = own.environment ? bench::processor_seconds_of_others(group, *own.environment, begin) : 0;
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
void run_as_process(AllReduceOptions options, const WorkerEnvironment& environment) {
  if (options.compare_gloo() && environment.spans_nodes())
    throw UsageError("--compare gloo needs all ranks on one machine, but they are on several: leave it out");
  const Compute compute = make_compute({.device = options.device,
                                        .simulate_gpu = options.simulated.card,
                                        .simulate_seed = options.simulated.seed,
                                        .timeout = options.timeout,
                                        .local_rank = environment.local_rank});
  const Ranks ranks = make_group(
      environment, {.timeout = options.timeout, .comm = parse_choice<TransportKind>("comm", options.comm)}, &compute);
  if (environment.spans_nodes() && options.comm == "auto") options.comm = "tcp";
  run_rank(options, {*ranks.group, *compute.device, &compute, &environment});
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

int run(Arguments args, KeptAlive&) {
  AllReduceOptions options;
  if (!words_or_help(command_line(options), args)) return kOk;
  check_options(options);
  options.payloads = payloads_of(options);
  if (options.common.list) {
    list_transports(options);
    return kOk;
  }
  const auto environment = WorkerEnvironment::from_environment(system_variable);
  if (environment.rank == 0) {
    bench::check_files(options.common.files);
    check_output({.option = "--plot", .path = options.plot, .is_ours = page::is_picture}, options.common.files.replace);
  }
  if (options.in_process()) {
    if (environment.is_launched())
      throw UsageError("--comm in-process starts its ranks itself: leave the launcher out");
    run_in_process(options);
    return kOk;
  }
  return bench::run_as_processes(
      {.name = "allreduce", .args = args, .nprocs = options.nproc, .by_default = kDefaultRanks}, environment,
      [&] { run_as_process(options, environment); });
}

}  // namespace

const Command kBenchAllReduce{.name = "allreduce",
                              .help = "correctness and speed of all-reduce between processes",
                              .run = run,
                              .describe = describe<AllReduceOptions>};

}  // namespace gradring::train
