// SPDX-License-Identifier: Apache-2.0
#include "train/bench/commands/allreduce_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <string_view>
#include <utility>

#include "kernels/base/nearest_name.h"
#include "train/core/config/train_config.h"
#include "train/options/commands.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

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
/// Of a sweep; also rows of the table.
constexpr std::size_t kMostSizes = 10'000;

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
  constexpr std::string_view kWords[] = {"auto", "ring", "direct", "nccl"};
  parse_word("algorithm", text, kWords);
  if (text == "auto") return comm::AllReduceAlgorithm::automatic;
  if (text == "nccl") return comm::AllReduceAlgorithm::nccl;
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

Option letter_option(const char* name, char letter, const char* value, const char* help,
                     std::function<void(std::string_view)> read) {
  return {.name = name, .letter = letter, .value = value, .help = help, .read = std::move(read)};
}

/// A size in bytes.
Option size_option(const char* name, char letter, const char* help, std::size_t& bytes) {
  return letter_option(name, letter, "SIZE", help,
                       [=, &bytes](std::string_view text) { bytes = parse_size(name, text); });
}

Option with_letter(char letter, Option option) {
  option.letter = letter;
  return option;
}

}  // namespace

const char* AllReduceOptions::transport() const {
  if (is_simulated(simulated.card)) return "simulated nccl";
  if (on_gpu()) return "nccl";
  return comm == "auto" ? "shm" : comm.c_str();
}

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

CommandLine command_line(AllReduceOptions& options) {
  static constexpr std::string_view kComm[] = {"auto", "shm", "tcp", "in-process", "nccl"}, kPeers[] = {"gloo"};
  Option dtype = letter_option("dtype", 'd', "fp32|fp16|bf16|int32|int64", "element type (default fp32)",
                               [&](std::string_view text) { options.dtype = parse_type(text); });
  dtype.aliases = {"datatype"};
  return {
      .command = "gradring bench allreduce",
      .purpose = "correctness and speed of all-reduce, with the options and table of nccl-tests",
      .usage = {"gradring bench allreduce [OPTIONS]", "gradring launch --nproc-per-node N bench allreduce [OPTIONS]"},
      .options = with_common_options(
          {size_option("minbytes", 'b', "smallest size (default 4K)", options.least),
           size_option("maxbytes", 'e', "largest size (default 32M)", options.most),
           letter_option("stepfactor", 'f', "N", "factor between sizes (default 2)",
                         [&](std::string_view text) {
                           options.factor = static_cast<std::size_t>(
                               parse_integer("stepfactor", text, {.least = 2, .most = 1 << 20}));
                         }),
           size_option("stepbytes", 'i', "increment between sizes, instead of a factor", options.increment),
           letter_option("sizes", 0, "SIZE,...", "list of sizes, instead of a range",
                         [&](std::string_view text) { options.sizes = parse_sizes(text); }),
           with_letter('n',
                       count_option("iters", "measured iterations (default 20)", 1, options.repetitions.iterations)),
           with_letter('w', count_option("warmup-iters", "iterations before the measured ones (default 5)", 0,
                                         options.repetitions.warmups)),
           letter_option("check", 'c', "0|1", "verification of the sums, which are exact in any order (default 1)",
                         [&](std::string_view text) { options.check = parse_flag("check", text); }),
           std::move(dtype),
           letter_option("algorithm", 'a', "auto|ring|direct|nccl",
                         "all-reduce algorithm; nccl: ncclAllReduce (default auto)",
                         [&](std::string_view text) {
                           options.algorithm = parse_algorithm(text);
                           options.algorithm_name = text;
                         }),
           {.name = "device",
            .value = "cpu|cuda[:I]",
            .help = "device of the arrays; cuda: one GPU per rank (default cpu)",
            .read =
                [&](std::string_view text) {
                  options.device = text == "cuda" ? "cuda" : kernels::DeviceId::parse(text).to_string();
                }},
           simulate_gpu_option(options.simulated),
           simulate_seed_option(options.simulated),
           choice_option("comm", kComm,
                         "transport between ranks; in-process: ranks are threads of one process (default auto: "
                         "shm on the CPU, nccl on GPUs)",
                         options.comm),
           switch_option("fresh", "new elements before each iteration, written unmeasured, as backward does",
                         options.repetitions.fresh),
           with_letter(
               'I', switch_option("report-iters", "spread of the iterations in the table", options.report_iterations)),
           nprocs_option("ranks, each a process, or a thread with in-process (default 2, or the launcher's)", "nproc",
                         options.nproc),
           letter_option("compare", 0, "gloo", "alternating measurement of PyTorch's gloo, in fp32",
                         [&](std::string_view text) {
                           parse_word("compare", text, kPeers);
                           options.compare_gloo = true;
                         }),
           new_file_option("plot", "FILE.svg",
                           "file for a plot of the bus bandwidth over the size, which is logarithmic", options.plot),
           letter_option("timeout", 0, "TIME", "longest wait of a rank for another (default 2m)",
                         [&](std::string_view text) { options.timeout = parse_duration("timeout", text); })},
          options.common),
      .notes = kAllReduceNotes};
}

void check_options(const AllReduceOptions& options) {
  check_simulated_gpu(options.simulated.card, options.device);
  if (options.on_gpu() && options.comm != "auto" && options.comm != "nccl")
    throw UsageError(fmt::format("--comm {} transfers host memory, but the arrays are on --device {}: leave one out",
                                 options.comm, options.device));
  if (!options.on_gpu() && (options.comm == "nccl" || options.algorithm == comm::AllReduceAlgorithm::nccl))
    throw UsageError("NCCL transfers GPU memory, but the arrays are on the CPU: add --device cuda");
  if (options.compare_gloo && options.dtype != kernels::DType::f32)
    throw UsageError("--compare gloo measures fp32: leave --dtype out");
  if (options.compare_gloo && (options.on_gpu() || options.in_process()))
    throw UsageError(
        "--compare gloo needs a process per rank on the CPU: leave --device out, or use --comm shm or tcp");
}

void list_transports(const AllReduceOptions& options) {
  const std::string missing = missing_gpu();
  const std::vector<std::string> transports = {
      "shm         CPU; ranks are processes of one machine, through shared memory",
      "tcp         CPU; ranks are processes, through TCP", "in-process  CPU; ranks are threads of one process",
      "nccl        " + (missing.empty() ? std::string("GPU; a GPU per rank") : "not available here: " + missing)};
  print_list("--comm:", transports);
  print_list("--algorithm:", std::vector<std::string>{"ring", "direct (shm and in-process)", "nccl (ncclAllReduce)"});
  std::vector<std::string> types;
  for (std::size_t i = 0; i < kShownTypes; ++i) types.emplace_back(kTypes[i].first);
  print_list("--dtype:", types);
  std::vector<std::string> sizes;
  for (const std::size_t size : options.sizes) sizes.push_back(std::to_string(size));
  print_list("sizes in bytes:", sizes);
}

}  // namespace gradring::train
