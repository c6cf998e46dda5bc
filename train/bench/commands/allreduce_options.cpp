// SPDX-License-Identifier: Apache-2.0
#include "train/bench/commands/allreduce_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>

#include "comm/bench/host_bench.h"
#include "train/core/config/train_config.h"
#include "train/options/commands.h"
#include "train/options/exit_code.h"
#include "train/options/parse_value.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

constexpr const char* kAllReduceNotes =
    "Sizes are bytes, or end in K, M or G (2^10, 2^20, 2^30). The all-reduce is in-place, so the table has no columns "
    "for out-of-place. time is the median of the iterations, and of each iteration the slowest rank's. --collective "
    "agreement measures what ranks do after a training step: they sum two flags on the host. barrier is on the host, "
    "too. --compare gloo starts one Python with PyTorch per rank: GRADRING_PYTHON, or else the first python3 on PATH "
    "that imports torch. The two alternate, and the medians of all iterations are compared. An agreement is compared "
    "with all_reduce of two int64. Under torchrun, mpirun, srun or gradring launch each process is a rank.\n\n";

constexpr const char* kAllReduceExamples =
    "\nExamples:\n"
    "  gradring bench allreduce -b 4K -e 32M -f 4\n"
    "  gradring bench allreduce --sizes 64K,1724968,32M --nprocs 4 --compare gloo\n"
    "  gradring bench allreduce --collective agreement --nprocs 64 --comm tcp\n"
    "  mpirun -np 2 gradring bench allreduce\n";

/// Element types; behind the first five, those of nccl-tests.
constexpr std::pair<std::string_view, kernels::DType> kTypes[] = {
    {"fp32", kernels::DType::f32},  {"fp16", kernels::DType::f16},     {"bf16", kernels::DType::bf16},
    {"int32", kernels::DType::i32}, {"int64", kernels::DType::i64},    {"float", kernels::DType::f32},
    {"half", kernels::DType::f16},  {"bfloat16", kernels::DType::bf16}};
constexpr std::size_t kShownTypes = 5;

constexpr std::string_view kCollectives[] = {"allreduce", "agreement", "barrier"};

/// In the order of comm::AllReduceAlgorithm.
constexpr std::string_view kAlgorithms[] = {"auto", "ring", "direct", "nccl"};

constexpr std::size_t kMostBytes = std::size_t{1} << 40;
/// Of a sweep; also rows of the table.
constexpr std::size_t kMostSizes = 10'000;

kernels::DType parse_type(std::string_view option, std::string_view text) {
  std::vector<std::string_view> names;
  for (const auto& [name, dtype] : kTypes) {
    if (name == text) return dtype;
    if (names.size() < kShownTypes) names.push_back(name);
  }
  parse_word(option, text, names);
  return {};
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

std::vector<std::size_t> parse_sizes(std::string_view option, std::string_view text) {
  std::vector<std::size_t> sizes;
  for (const std::string& word : comma_separated(std::string(text))) sizes.push_back(parse_size(option, word));
  return sizes;
}

/// In bytes, from --sizes or the range.
std::vector<std::size_t> sizes_of(const AllReduceOptions& options) {
  if (!options.sizes.empty()) return options.sizes;
  if (options.least > options.most)
    throw UsageError(
        fmt::format("--minbytes is {}, but must be at most --maxbytes, which is {}", options.least, options.most));
  std::vector<std::size_t> all;
  for (std::size_t size = options.least; size <= options.most;
       size = options.increment ? size + options.increment : std::max(size * options.factor, size + 1)) {
    if (all.size() == kMostSizes)
      throw UsageError(fmt::format("--stepbytes is {}, which is more than {} sizes from {} to {}: give a larger one",
                                   options.increment, kMostSizes, options.least, options.most));
    all.push_back(size);
  }
  return all;
}

}  // namespace

const char* AllReduceOptions::transport() const {
  if (is_simulated(simulated.card)) return "simulated nccl";
  if (on_gpu()) return "nccl";
  return comm == "auto" ? "shm" : comm.c_str();
}

std::vector<comm::bench::Payload> payloads_of(const AllReduceOptions& options) {
  if (options.is_barrier()) return {{.elements = 0}};
  if (!options.reduces_arrays()) return {{.elements = comm::bench::kAgreedFlags, .dtype = kernels::DType::i64}};
  std::vector<comm::bench::Payload> payloads;
  for (const std::size_t bytes : sizes_of(options))
    payloads.push_back({.elements = bytes / size_of(options.dtype), .dtype = options.dtype});
  return payloads;
}

comm::AllReduceAlgorithm algorithm_of(const AllReduceOptions& options) {
  return static_cast<comm::AllReduceAlgorithm>(std::ranges::find(kAlgorithms, options.algorithm) - kAlgorithms);
}

CommandLine command_line(AllReduceOptions& options) {
  static constexpr std::string_view kComm[] = {"auto", "shm", "tcp", "in-process", "nccl"}, kPeers[] = {"gloo"};
  const auto parse_device = [](std::string_view, std::string_view text) {
    return text == "cuda" ? "cuda" : kernels::DeviceId::parse(text).to_string();
  };
  const auto parse_factor = [](std::string_view name, std::string_view text) {
    return parse_integer(name, text, {.least = 2, .most = 1 << 20});
  };
  // An option that does not apply to every collective.
  const auto limited = [&options](Option option) {
    option.read = [read = option.read, name = option.name, &options](std::string_view text) {
      options.given.push_back(name);
      read(text);
    };
    return option;
  };
  return {
      .command = "gradring bench allreduce",
      .purpose =
          "correctness and speed of all-reduce, or of the collectives of host values, with the options and table "
          "of nccl-tests",
      .usage = {"gradring bench allreduce [OPTIONS]", "gradring launch --nproc-per-node N bench allreduce [OPTIONS]"},
      .options = with_common_options(
          {choice_option(
               "collective", kCollectives,
               "what is measured: all-reduce of arrays, or agreement or barrier of ranks on the host (default "
               "allreduce)",
               options.collective),
           limited(value_option("minbytes,b", "SIZE", "smallest size (default 4K)", parse_size, options.least)),
           limited(value_option("maxbytes,e", "SIZE", "largest size (default 32M)", parse_size, options.most)),
           limited(value_option("stepfactor,f", "N", "factor between sizes (default 2)", parse_factor, options.factor)),
           limited(value_option("stepbytes,i", "SIZE", "increment between sizes, instead of a factor", parse_size,
                                options.increment)),
           limited(value_option("sizes", "SIZE,...", "list of sizes, instead of a range", parse_sizes, options.sizes)),
           count_option("iters,n", "measured iterations (default 20)", 1, options.repetitions.iterations),
           count_option("warmup-iters,w", "iterations before the measured ones (default 5)", 0,
                        options.repetitions.warmups),
           limited(value_option("check,c", "0|1", "verification of the sums, which are exact in any order (default 1)",
                                parse_flag, options.check)),
           limited(value_option("dtype,d", "fp32|fp16|bf16|int32|int64", "element type (default fp32)", parse_type,
                                options.dtype)),
           limited(choice_option("algorithm,a", kAlgorithms, "all-reduce algorithm; nccl: ncclAllReduce (default auto)",
                                 options.algorithm)),
           limited(value_option("device", "cpu|cuda[:I]", "device of the arrays; cuda: one GPU per rank (default cpu)",
                                parse_device, options.device)),
           simulate_gpu_option(options.simulated),
           simulate_seed_option(options.simulated),
           choice_option("comm", kComm,
                         "transport between ranks; in-process: ranks are threads of one process (default auto: "
                         "shm on the CPU, nccl on GPUs)",
                         options.comm),
           limited(switch_option("fresh", "new elements before each iteration, written unmeasured, as backward does",
                                 options.repetitions.fresh)),
           switch_option("report-iters,I", "spread of the iterations in the table", options.report_iterations),
           count_option("nprocs", "ranks, each a process, or a thread with in-process (default 2, or the launcher's)",
                        1, options.nproc),
           choice_option("compare", kPeers, "alternating measurement of PyTorch's gloo, of arrays in fp32",
                         options.peer),
           limited(new_file_option("plot", "FILE.svg",
                                   "file for a plot of the bus bandwidth over the size, which is logarithmic",
                                   options.plot)),
           value_option("timeout", "TIME", "longest wait of a rank for another (default 2m)", parse_duration,
                        options.timeout)},
          options.common),
      .notes = kAllReduceNotes +
               exit_codes_text({{0}, {1, "a sum was wrong"}, {2}, {3, "no Python with PyTorch"}, {161}, {162}}) +
               kAllReduceExamples};
}

void check_options(const AllReduceOptions& options) {
  for (const std::string& name : options.given)
    if (options.is_barrier() || (!options.reduces_arrays() && name != "check"))
      throw UsageError(fmt::format("--{} does not apply to --collective {}, which {}: leave it out", name,
                                   options.collective,
                                   options.is_barrier() ? "has no data" : "sums two flags on the host"));
  check_simulated_gpu(options.simulated.card, options.device);
  if (options.on_gpu() && options.comm != "auto" && options.comm != "nccl")
    throw UsageError(fmt::format("--comm {} transfers host memory, but the arrays are on --device {}: leave one out",
                                 options.comm, options.device));
  if (!options.on_gpu() && (options.comm == "nccl" || options.algorithm == "nccl"))
    throw UsageError("NCCL transfers GPU memory, but the arrays are on the CPU: add --device cuda");
  if (options.compare_gloo() && options.dtype != kernels::DType::f32)
    throw UsageError("--compare gloo measures fp32: leave --dtype out");
  if (options.compare_gloo() && (options.on_gpu() || options.in_process()))
    throw UsageError(
        "--compare gloo needs a process per rank on the CPU: leave --device out, or use --comm shm or tcp");
}

void list_transports(const AllReduceOptions& options) {
  const std::string missing = missing_gpu();
  print_list("--comm:",
             {"shm         CPU; ranks are processes of one machine, through shared memory",
              "tcp         CPU; ranks are processes, through TCP", "in-process  CPU; ranks are threads of one process",
              "nccl        " + (missing.empty() ? "GPU; a GPU per rank" : "not available here: " + missing)});
  print_list("--collective:",
             {"allreduce   of arrays", "agreement   sum of two flags on the host", "barrier     on the host"});
  print_list("--algorithm:", {"ring", "direct (shm and in-process)", "nccl (ncclAllReduce)"});
  print_list("--dtype:", std::span(kTypes).first(kShownTypes) | std::views::keys);
  print_list("sizes in bytes:", options.payloads | std::views::transform(&comm::bench::Payload::bytes));
}

}  // namespace gradring::train
