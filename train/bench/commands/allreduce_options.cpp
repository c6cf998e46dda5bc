// SPDX-License-Identifier: Apache-2.0
#include "train/bench/commands/allreduce_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

#include "kernels/runtime/nearest_name.h"
#include "train/bench/commands/options.h"
#include "train/cli/commands.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

constexpr const char* kNotes =
    "Sizes are bytes, or end in K, M or G (2^10, 2^20, 2^30). The all-reduce is in-place, so the table has no columns "
    "for "
    "out-of-place. time is the median of the iterations, and of each iteration the slowest rank's. --compare gloo "
    "starts "
    "one Python with PyTorch per rank: GRADRING_PYTHON, or else the first python3 on PATH that imports torch. The two "
    "alternate, and the medians of all iterations are compared.\n\n"
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

/// The sizes that -b, -e, and -f or -i select.
struct SizeRange {
  std::size_t least = 4096;
  std::size_t most = std::size_t{32} << 20;
  std::size_t factor = 2;
  std::size_t increment = 0;

  std::vector<std::size_t> sizes() const {
    if (least > most)
      throw UsageError(fmt::format("--minbytes is {}, but must be at most --maxbytes, which is {}", least, most));
    std::vector<std::size_t> all;
    for (std::size_t size = least; size <= most;
         size = increment ? size + increment : std::max(size * factor, size + 1))
      all.push_back(size);
    return all;
  }
};

/// Options before they are resolved.
struct Parsing {
  AllReduceBenchOptions options;
  SizeRange range;
};

std::function<void(std::string_view)> integer(const char* name, int least, int& value) {
  return [=, &value](std::string_view text) { value = static_cast<int>(parse_integer(name, text, {.least = least})); };
}

std::function<void(std::string_view)> bytes(const char* name, std::size_t& value) {
  return [=, &value](std::string_view text) { value = parse_size(name, text); };
}

std::vector<Option> size_options(Parsing& parsing) {
  SizeRange& range = parsing.range;
  auto& sizes = parsing.options.sizes;
  return {{.name = "minbytes",
           .letter = 'b',
           .value = "SIZE",
           .help = "smallest size (default 4K)",
           .read = bytes("minbytes", range.least)},
          {.name = "maxbytes",
           .letter = 'e',
           .value = "SIZE",
           .help = "largest size (default 32M)",
           .read = bytes("maxbytes", range.most)},
          {.name = "stepfactor",
           .letter = 'f',
           .value = "N",
           .help = "factor between sizes (default 2)",
           .read =
               [&](std::string_view text) {
                 range.factor =
                     static_cast<std::size_t>(parse_integer("stepfactor", text, {.least = 2, .most = 1 << 20}));
               }},
          {.name = "stepbytes",
           .letter = 'i',
           .value = "SIZE",
           .help = "increment between sizes, instead of a factor",
           .read = bytes("stepbytes", range.increment)},
          {.name = "sizes",
           .value = "SIZE,...",
           .help = "list of sizes, instead of a range",
           .read = [&](std::string_view text) { sizes = parse_sizes(text); }}};
}

std::vector<Option> other_options(AllReduceBenchOptions& options) {
  Option report = switch_option("report-iters", "spread of the iterations in the table", options.report_iterations);
  report.letter = 'I';
  return {{.name = "iters",
           .letter = 'n',
           .value = "N",
           .help = "measured iterations (default 20)",
           .read = integer("iters", 1, options.repetitions.iterations)},
          {.name = "warmup-iters",
           .letter = 'w',
           .value = "N",
           .help = "iterations before the measured ones (default 5)",
           .read = integer("warmup-iters", 0, options.repetitions.warmups)},
          {.name = "check",
           .letter = 'c',
           .value = "0|1",
           .help = "verification of the sums, which are exact in any order (default 1)",
           .read = [&](std::string_view text) { options.check = parse_flag("check", text); }},
          {.name = "dtype",
           .letter = 'd',
           .value = "fp32|fp16|bf16|int32|int64",
           .help = "element type (default fp32)",
           .read = [&](std::string_view text) { options.dtype = parse_type(text); },
           .aliases = {"datatype"}},
          {.name = "algorithm",
           .letter = 'a',
           .value = "auto|ring|direct",
           .help = "all-reduce algorithm (default auto)",
           .read = [&](std::string_view text) { options.algorithm = parse_algorithm(text); }},
          {.name = "comm",
           .value = "auto|shm|tcp",
           .help = "transport between ranks (default auto: shm)",
           .read =
               [&](std::string_view text) {
                 constexpr std::string_view kWords[] = {"auto", "shm", "tcp"};
                 options.comm = parse_word("comm", text, kWords);
               }},
          switch_option("fresh", "new elements before each iteration, written unmeasured, as backward does",
                        options.repetitions.fresh),
          std::move(report),
          json_file_option(options.json),
          nprocs_option("ranks, each a process (default 2, or the launcher's)", "nproc", options.nproc),
          {.name = "compare",
           .value = "gloo",
           .help = "alternating measurement of PyTorch's gloo, in fp32",
           .read =
               [&](std::string_view text) {
                 constexpr std::string_view kPeers[] = {"gloo"};
                 parse_word("compare", text, kPeers);
                 options.compare_gloo = true;
               }},
          {.name = "timeout",
           .value = "TIME",
           .help = "longest wait of a rank for another (default 2m)",
           .read = [&](std::string_view text) { options.timeout = parse_duration("timeout", text); }}};
}

CommandLine command_line(Parsing& parsing) {
  CommandLine line{
      .command = "gradring bench allreduce",
      .purpose = "correctness and speed of all-reduce, with the options and table of nccl-tests",
      .usage = {"gradring bench allreduce [OPTIONS]", "gradring launch --nproc-per-node N bench allreduce [OPTIONS]"},
      .options = size_options(parsing),
      .notes = kNotes};
  std::ranges::move(other_options(parsing.options), std::back_inserter(line.options));
  return line;
}

}  // namespace

std::optional<AllReduceBenchOptions> parse_bench_allreduce(Arguments args) {
  Parsing parsing;
  AllReduceBenchOptions& options = parsing.options;
  if (!words_or_help(command_line(parsing), args)) return std::nullopt;
  if (options.sizes.empty()) options.sizes = parsing.range.sizes();
  if (options.compare_gloo && options.dtype != kernels::DType::f32)
    throw UsageError("--compare gloo measures fp32: leave --dtype out");
  return options;
}

CommandLine bench_allreduce_line() { return describe<Parsing, command_line>(); }

}  // namespace gradring::train
