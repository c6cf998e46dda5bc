// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_allreduce_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

#include "kernels/runtime/nearest_name.h"
#include "train/cli/bench_options.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

constexpr const char* kHead =
    "gradring bench allreduce: time and check an all-reduce, in the words of nccl-tests\n\n"
    "  gradring bench allreduce [options]                              as many ranks as --nproc says\n"
    "  gradring launch --nproc-per-node N bench allreduce [options]\n\n"
    "Options; in brackets the default:\n";

constexpr const char* kFoot =
    "\nSizes are bytes, or end in K, M or G (2^10, 2^20, 2^30). There is no out-of-place all-reduce here, so the table "
    "has\n"
    "no columns for one. time is the median of the iterations, and of each iteration the slowest rank's.\n"
    "--compare gloo starts one Python with PyTorch beside each rank: GRADRING_PYTHON, or else the first python3 along "
    "PATH\n"
    "that imports torch. The two take turns, and of all their iterations the medians are compared.\n"
    "\nExit codes: 0 ok; 1 a sum was wrong; 2 usage; 3 no such Python; 161 a rank was lost; 162 a rank was late.\n"
    "\nExamples:\n"
    "  gradring bench allreduce -b 4K -e 32M -f 4\n"
    "  gradring bench allreduce --sizes 64K,1724968,32M --nproc 4 --compare gloo -J all_reduce.json\n";

/// The two spellings of element types, ours and nccl-tests'.
constexpr std::pair<std::string_view, kernels::DType> kTypes[] = {
    {"float", kernels::DType::f32}, {"half", kernels::DType::f16},  {"bfloat16", kernels::DType::bf16},
    {"int32", kernels::DType::i32}, {"int64", kernels::DType::i64}, {"f32", kernels::DType::f32},
    {"f16", kernels::DType::f16},   {"bf16", kernels::DType::bf16}, {"i32", kernels::DType::i32},
    {"i64", kernels::DType::i64}};

constexpr std::size_t kMostBytes = std::size_t{1} << 40;

kernels::DType parse_type(std::string_view text) {
  std::vector<std::string_view> names;
  for (const auto& [name, dtype] : kTypes) {
    if (name == text) return dtype;
    names.push_back(name);
  }
  throw UsageError(fmt::format("--datatype is '{}', but must be one of {}.{}", text, fmt::join(names, ", "),
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

/// The ladder of sizes that -b, -e, and -f or -i ask for.
struct Ladder {
  std::size_t least = 4096;
  std::size_t most = std::size_t{32} << 20;
  std::size_t factor = 2;
  std::size_t increment = 0;

  std::vector<std::size_t> sizes() const {
    if (least > most) throw UsageError(fmt::format("--minbytes is {}, above --maxbytes, which is {}", least, most));
    std::vector<std::size_t> all;
    for (std::size_t size = least; size <= most;
         size = increment ? size + increment : std::max(size * factor, size + 1))
      all.push_back(size);
    return all;
  }
};

/// What is read before it is known what it means.
struct Parsing {
  AllReduceBenchOptions options;
  Ladder ladder;
};

using Option = CommandOption;

std::function<void(std::string_view)> integer(const char* name, int least, int& value) {
  return [=, &value](std::string_view text) { value = static_cast<int>(parse_integer(name, text, {.least = least})); };
}

std::function<void(std::string_view)> bytes(const char* name, std::size_t& value) {
  return [=, &value](std::string_view text) { value = parse_size(name, text); };
}

std::vector<Option> size_options(Parsing& parsing) {
  Ladder& ladder = parsing.ladder;
  auto& sizes = parsing.options.sizes;
  return {{.name = "minbytes",
           .letter = 'b',
           .value = "SIZE",
           .help = "the first size [4K]",
           .read = bytes("minbytes", ladder.least)},
          {.name = "maxbytes",
           .letter = 'e',
           .value = "SIZE",
           .help = "the last size [32M]",
           .read = bytes("maxbytes", ladder.most)},
          {.name = "stepfactor",
           .letter = 'f',
           .value = "N",
           .help = "from size to size: times N [2]",
           .read =
               [&](std::string_view text) {
                 ladder.factor =
                     static_cast<std::size_t>(parse_integer("stepfactor", text, {.least = 2, .most = 1 << 20}));
               }},
          {.name = "stepbytes",
           .letter = 'i',
           .value = "SIZE",
           .help = "from size to size: plus SIZE, instead of times N",
           .read = bytes("stepbytes", ladder.increment)},
          {.name = "sizes",
           .value = "SIZE,...",
           .help = "these sizes, instead of a ladder",
           .read = [&](std::string_view text) { sizes = parse_sizes(text); }}};
}

std::vector<Option> other_options(AllReduceBenchOptions& options) {
  return {{.name = "iters",
           .letter = 'n',
           .value = "N",
           .help = "iterations measured [20]",
           .read = integer("iters", 1, options.repetitions.iterations)},
          {.name = "warmup-iters",
           .letter = 'w',
           .value = "N",
           .help = "iterations before that [5]",
           .read = integer("warmup-iters", 0, options.repetitions.warmups)},
          {.name = "check",
           .letter = 'c',
           .value = "0|1",
           .help = "check the sums, which are exact in any order [1]",
           .read = [&](std::string_view text) { options.check = parse_flag("check", text); }},
          {.name = "datatype",
           .letter = 'd',
           .value = "TYPE",
           .help = "float, half, bfloat16, int32, int64 [float]",
           .read = [&](std::string_view text) { options.dtype = parse_type(text); }},
          {.name = "algorithm",
           .letter = 'a',
           .value = "auto|ring|direct",
           .help = "how it goes about it [auto]",
           .read = [&](std::string_view text) { options.algorithm = parse_algorithm(text); }},
          {.name = "comm",
           .value = "auto|shm|tcp",
           .help = "what carries the bytes [auto: shm]",
           .read =
               [&](std::string_view text) {
                 constexpr std::string_view kWords[] = {"auto", "shm", "tcp"};
                 options.comm = parse_word("comm", text, kWords);
               }},
          {.name = "fresh",
           .help = "before each iteration, unmeasured, ranks write their elements anew, as backward does",
           .read = set_switch("fresh", options.repetitions.fresh)},
          {.name = "report-iters",
           .letter = 'I',
           .help = "show the spread of the iterations",
           .read = set_switch("report-iters", options.report_iterations)},
          json_option(options.json),
          count_option("nproc", "ranks, each a process [2, or as the launcher says]", 1, options.nproc),
          {.name = "compare",
           .value = "gloo",
           .help = "measure PyTorch's gloo in turns with this, in float32",
           .read =
               [&](std::string_view text) {
                 constexpr std::string_view kPeers[] = {"gloo"};
                 parse_word("compare", text, kPeers);
                 options.compare_gloo = true;
               }},
          {.name = "timeout",
           .value = "TIME",
           .help = "longest wait for anything [2m]",
           .read = [&](std::string_view text) { options.timeout = parse_duration("timeout", text); }}};
}

CommandLine command_line(Parsing& parsing) {
  CommandLine line{.command = "gradring bench allreduce", .options = size_options(parsing)};
  std::ranges::move(other_options(parsing.options), std::back_inserter(line.options));
  return line;
}

}  // namespace

AllReduceBenchOptions parse_bench_allreduce(std::span<const std::string> args) {
  Parsing parsing;
  AllReduceBenchOptions& options = parsing.options;
  options.help = read_command_line(command_line(parsing), args).help;
  if (options.sizes.empty()) options.sizes = parsing.ladder.sizes();
  if (options.compare_gloo && options.dtype != kernels::DType::f32)
    throw UsageError("--compare gloo measures float32: leave --datatype out");
  return options;
}

std::string bench_allreduce_help() {
  Parsing unused;
  return kHead + help_of(command_line(unused).options) + kFoot;
}

}  // namespace gradring::train
