// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "comm/bench/all_reduce_bench.h"
#include "comm/bench/gloo_peer.h"
#include "kernels/bench/statistics.h"
#include "kernels/host/host_device.h"
#include "kernels/runtime/nearest_name.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/cli/exit_code.h"
#include "train/doctor/find_python.h"
#include "train/launch/launcher.h"
#include "train/launch/run_folder.h"
#include "train/launch/worker_environment.h"
#include "train/options/usage_error.h"
#include "train/report/environment_error.h"
#include "train/setup/rendezvous.h"

namespace gradring::train {
namespace {

using kernels::bench::statistics_of;

constexpr const char* kAllReduceNotes =
    "Sizes are bytes, or end in K, M or G (2^10, 2^20, 2^30). The all-reduce is in-place, so the table has no columns "
    "for out-of-place. time is the median of the iterations, and of each iteration the slowest rank's. --compare gloo "
    "starts one Python with PyTorch per rank: GRADRING_PYTHON, or else the first python3 on PATH that imports torch. "
    "The two alternate, and the medians of all iterations are compared.\n\n"
    "Exit codes:\n"
    "    0  success\n"
    "    1  a sum was wrong\n"
    "    2  usage error\n"
    "    3  no Python with PyTorch\n"
    "  161  a rank was lost\n"
    "  162  a rank timed out\n\n"
    "Examples:\n"
    "  gradring bench allreduce -b 4K -e 32M -f 4\n"
    "  gradring bench allreduce --sizes 64K,1724968,32M --nprocs 4 --compare gloo\n";

/// Element types; behind the first five, older spellings and those of nccl-tests.
constexpr std::pair<std::string_view, kernels::DType> kTypes[] = {
    {"fp32", kernels::DType::f32},  {"fp16", kernels::DType::f16},      {"bf16", kernels::DType::bf16},
    {"int32", kernels::DType::i32}, {"int64", kernels::DType::i64},     {"float", kernels::DType::f32},
    {"half", kernels::DType::f16},  {"bfloat16", kernels::DType::bf16}, {"f32", kernels::DType::f32},
    {"f16", kernels::DType::f16},   {"i32", kernels::DType::i32},       {"i64", kernels::DType::i64}};
constexpr std::size_t kShownTypes = 5;

constexpr std::size_t kMostBytes = std::size_t{1} << 40;

kernels::DType parse_type(std::string_view text) {
  std::vector<std::string_view> names;
  for (const auto& [name, dtype] : kTypes) {
    if (name == text) return dtype;
    names.push_back(name);
  }
  names.resize(kShownTypes);
  throw UsageError(fmt::format("--dtype is '{}', but must be one of {}.{}", text, fmt::join(names, ", "),
                               did_you_mean(text, names)));
}

comm::AllReduceAlgorithm parse_algorithm(std::string_view text) {
  constexpr std::string_view kWords[] = {"auto", "ring", "direct"};
  parse_word("algorithm", text, kWords);
  if (text == "auto") return comm::AllReduceAlgorithm::automatic;
  return text == "ring" ? comm::AllReduceAlgorithm::ring : comm::AllReduceAlgorithm::direct;
}

/// "64K" as 65536.
std::size_t parse_size(std::string_view option, std::string_view text) {
  constexpr std::string_view kUnits = "KMG";
  const std::size_t unit = text.empty() ? kUnits.npos : kUnits.find(static_cast<char>(text.back() & ~0x20));
  const bool has_unit = unit != kUnits.npos && text.size() > 1;
  const int shift = has_unit ? 10 * (static_cast<int>(unit) + 1) : 0;
  const std::string_view number = has_unit ? text.substr(0, text.size() - 1) : text;
  const auto most = static_cast<std::int64_t>(kMostBytes >> shift);
  return static_cast<std::size_t>(parse_integer(option, number, {.least = 0, .most = most})) << shift;
}

std::vector<std::size_t> parse_sizes(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::vector<std::size_t> sizes;
  for (std::string word; std::getline(words, word, ',');) sizes.push_back(parse_size("sizes", word));
  return sizes;
}

struct AllReduceOptions {
  std::size_t least = 4096;  ///< sizes in bytes, rounded down to whole elements
  std::size_t most = std::size_t{32} << 20;
  std::size_t factor = 2;
  std::size_t increment = 0;       ///< instead of the factor; 0: none
  std::vector<std::size_t> sizes;  ///< instead of the range above
  kernels::DType dtype = kernels::DType::f32;
  comm::bench::Repetitions repetitions;
  comm::AllReduceAlgorithm algorithm = comm::AllReduceAlgorithm::automatic;
  std::string comm = "auto";  ///< transport: auto, shm, tcp
  bool check = true;
  bool report_iterations = false;
  bool compare_gloo = false;
  int nproc = 0;  ///< 0: not given
  std::chrono::milliseconds timeout = std::chrono::minutes(2);
  std::string json;  ///< empty: none
};

std::vector<std::size_t> sizes_of(const AllReduceOptions& options) {
  if (!options.sizes.empty()) return options.sizes;
  if (options.least > options.most)
    throw UsageError(
        fmt::format("--minbytes is {}, but must be at most --maxbytes, which is {}", options.least, options.most));
  std::vector<std::size_t> all;
  for (std::size_t size = options.least; size <= options.most;
       size = options.increment ? size + options.increment : std::max(size * options.factor, size + 1))
    all.push_back(size);
  return all;
}

Option option(const char* name, char letter, const char* value, const char* help,
              std::function<void(std::string_view)> read) {
  return {.name = name, .letter = letter, .value = value, .help = help, .read = std::move(read)};
}

/// A size in bytes.
Option size_option(const char* name, char letter, const char* help, std::size_t& bytes) {
  return option(name, letter, "SIZE", help, [=, &bytes](std::string_view text) { bytes = parse_size(name, text); });
}

Option with_letter(char letter, Option option) {
  option.letter = letter;
  return option;
}

CommandLine command_line(AllReduceOptions& options) {
  static constexpr std::string_view kComm[] = {"auto", "shm", "tcp"}, kPeers[] = {"gloo"};
  Option dtype = option("dtype", 'd', "fp32|fp16|bf16|int32|int64", "element type (default fp32)",
                        [&](std::string_view text) { options.dtype = parse_type(text); });
  dtype.aliases = {"datatype"};
  return {
      .command = "gradring bench allreduce",
      .purpose = "correctness and speed of all-reduce, with the options and table of nccl-tests",
      .usage = {"gradring bench allreduce [OPTIONS]", "gradring launch --nproc-per-node N bench allreduce [OPTIONS]"},
      .options = {size_option("minbytes", 'b', "smallest size (default 4K)", options.least),
                  size_option("maxbytes", 'e', "largest size (default 32M)", options.most),
                  option("stepfactor", 'f', "N", "factor between sizes (default 2)",
                         [&](std::string_view text) {
                           options.factor = static_cast<std::size_t>(
                               parse_integer("stepfactor", text, {.least = 2, .most = 1 << 20}));
                         }),
                  size_option("stepbytes", 'i', "increment between sizes, instead of a factor", options.increment),
                  option("sizes", 0, "SIZE,...", "list of sizes, instead of a range",
                         [&](std::string_view text) { options.sizes = parse_sizes(text); }),
                  with_letter('n', count_option("iters", "measured iterations (default 20)", 1,
                                                options.repetitions.iterations)),
                  with_letter('w', count_option("warmup-iters", "iterations before the measured ones (default 5)", 0,
                                                options.repetitions.warmups)),
                  option("check", 'c', "0|1", "verification of the sums, which are exact in any order (default 1)",
                         [&](std::string_view text) { options.check = parse_flag("check", text); }),
                  std::move(dtype),
                  option("algorithm", 'a', "auto|ring|direct", "all-reduce algorithm (default auto)",
                         [&](std::string_view text) { options.algorithm = parse_algorithm(text); }),
                  choice_option("comm", kComm, "transport between ranks (default auto: shm)", options.comm),
                  switch_option("fresh", "new elements before each iteration, written unmeasured, as backward does",
                                options.repetitions.fresh),
                  with_letter('I', switch_option("report-iters", "spread of the iterations in the table",
                                                 options.report_iterations)),
                  json_file_option(options.json),
                  nprocs_option("ranks, each a process (default 2, or the launcher's)", "nproc", options.nproc),
                  option("compare", 0, "gloo", "alternating measurement of PyTorch's gloo, in fp32",
                         [&](std::string_view text) {
                           parse_word("compare", text, kPeers);
                           options.compare_gloo = true;
                         }),
                  option("timeout", 0, "TIME", "longest wait of a rank for another (default 2m)",
                         [&](std::string_view text) { options.timeout = parse_duration("timeout", text); })},
      .notes = kAllReduceNotes};
}

constexpr double kGiga = 1e9;

/// Result for one size; times in seconds.
struct AllReduceRow {
  std::size_t elements = 0;
  std::size_t bytes = 0;
  kernels::bench::Statistics ours;
  double coefficient_of_variation = 0;  ///< of our times, in percent
  std::optional<kernels::bench::Statistics> gloo{};
  std::optional<std::size_t> wrong{};  ///< elements, over all ranks

  double ratio() const { return gloo->median / ours.median; }
  double algorithm_gigabytes() const { return comm::bench::algorithm_bandwidth(bytes, ours.median) / kGiga; }
  double bus_gigabytes(int world_size) const {
    return comm::bench::bus_bandwidth(bytes, ours.median, world_size) / kGiga;
  }
};

/// Results of a run of the benchmark.
struct AllReduceReport {
  kernels::bench::Provenance provenance;
  int world_size = 1;
  std::string peer{};  ///< "gloo of torch 1.13.0"; empty without comparison
  std::vector<AllReduceRow> rows{};
  std::size_t wrong = 0;  ///< elements, over all sizes and ranks
};

const char* medium_of(const AllReduceOptions& options) { return options.comm == "tcp" ? "tcp" : "shm"; }

std::string table_head(const AllReduceReport& report, const AllReduceOptions& options) {
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

std::string table_row(const AllReduceRow& row, const AllReduceReport& report, const AllReduceOptions& options) {
  const kernels::bench::Statistics& ours = row.ours;
  std::string text =
      fmt::format("{:>12} {:>13} {:>9} {:>7} {:>7} {:>8.2f} {:>7.2f} {:>7.2f} {:>7}", row.bytes, row.elements,
                  name_of(options.dtype), "sum", -1, ours.median * kMicroseconds, row.algorithm_gigabytes(),
                  row.bus_gigabytes(report.world_size), row.wrong ? std::to_string(*row.wrong) : "N/A");
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
  const std::string wrong =
      options.check ? fmt::format("{} {}", report.wrong, report.wrong == 0 ? "OK" : "FAILED") : "not checked";
  return fmt::format("# Out of bounds values : {}\n# Avg bus bandwidth    : {:.4g}\n", wrong,
                     report.rows.empty() ? 0 : sum / static_cast<double>(report.rows.size()));
}

nlohmann::json results_of(const AllReduceReport& report, const AllReduceOptions& options) {
  nlohmann::json rows = nlohmann::json::array();
  for (const AllReduceRow& row : report.rows) {
    nlohmann::json line = {{"size", row.bytes},
                           {"count", row.elements},
                           {"type", name_of(options.dtype)},
                           {"redop", "sum"},
                           {"root", -1},
                           {"in_place_microseconds", to_json(row.ours, kMicroseconds)},
                           {"algbw_gb_s", row.algorithm_gigabytes()},
                           {"busbw_gb_s", row.bus_gigabytes(report.world_size)}};
    if (row.wrong) line["wrong"] = *row.wrong;
    if (row.gloo) line.update({{"gloo_microseconds", to_json(*row.gloo, kMicroseconds)}, {"ratio", row.ratio()}});
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
  std::vector<double> ours, theirs;
  const auto append = [](std::vector<double>& all, const std::vector<double>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
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

void run_rank(const AllReduceOptions& options, const WorkerEnvironment& place) {
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
    report.wrong += report.rows.back().wrong.value_or(0);
    say(place.rank, table_row(report.rows.back(), report, options));
  }
  say(place.rank, table_foot(report, options));
  if (place.rank == 0) write_bench_file(options.json, "allreduce", report.provenance, results_of(report, options));
  group.barrier_on_host();  // a rank that exits early would break a slower one's reads
  if (report.wrong > 0) throw Error(fmt::format("{} sums were wrong", report.wrong));
}

/// Starts the ranks with the same arguments; the launcher reports their errors.
int spawn(const AllReduceOptions& options, Arguments args) {
  std::vector<std::string> command = {"bench", "allreduce"};
  command.insert(command.end(), args.begin(), args.end());
  return spawn_ranks(options.nproc ? options.nproc : kDefaultRanks, command);
}

int run(Arguments args) {
  AllReduceOptions options;
  if (!words_or_help(command_line(options), args)) return kOk;
  options.sizes = sizes_of(options);
  if (options.compare_gloo && options.dtype != kernels::DType::f32)
    throw UsageError("--compare gloo measures fp32: leave --dtype out");
  if (!system_variable("RANK")) return spawn(options, args);
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
                              .describe = describe<AllReduceOptions>};

}  // namespace gradring::train
