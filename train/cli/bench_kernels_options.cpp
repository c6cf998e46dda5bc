// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_kernels_options.h"

#include <fmt/format.h>

#include <sstream>

#include "kernels/bench/case_families.h"
#include "train/cli/bench_options.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

namespace kb = kernels::bench;

constexpr const char* kHead = "gradring bench kernels: every variant of every operation, on one core or on a GPU\n\n";

constexpr const char* kFoot =
    "\n"
    "error    the largest, as a part of what the operation's contract allows; what is wrong gets no time\n"
    "hot      arrays in cache as far as they fit; flushed: in no cache (on a GPU, the launch is part of it)\n"
    "roof     the median's share of what the machine can do, measured in this run. A core: the bytes moved (what is "
    "overwritten\n"
    "         unread counts twice) by the fastest of three plain loops, or the multiply-adds, whichever takes "
    "longer.\n"
    "         A GPU: the bytes moved by its own copies, or the multiply-adds of --op peak: in f32, or for 16 bits on "
    "tensor cores by\n"
    "         mma.sync. What uses wgmma, gemm's variant of that name and libraries, may go past that: more than 100 %\n"
    "x peer   the median as a multiple of that of the library below (cudnn, cublaslt; onednn on a CPU in f32), else of "
    "the "
    "loop\n"
    "         that anyone would write (f32 on a CPU)\n"
    "On a GPU a line for each kernel that a call launches: threads of a block, registers of a thread, shared memory of "
    "a "
    "block\n"
    "(static + dynamic), and how many warps a multiprocessor holds, of how many. --json has them on a CPU, too.\n";

std::vector<std::string_view> operation_names() {
  std::vector<std::string_view> names;
  for (const kb::CaseFamily& family : kb::case_families()) names.push_back(family.operation);
  return names;
}

/// "batch=256,in=32"
kb::Extents parse_shape(std::string_view text) {
  kb::Extents extents;
  std::istringstream words{std::string(text)};
  for (std::string word; std::getline(words, word, ',');) {
    const std::size_t sign = word.find('=');
    if (sign == word.npos || sign == 0)
      throw UsageError(fmt::format("--shape is '{}', but must be like batch=256,in=32", text));
    const std::string name = word.substr(0, sign);
    extents[name] = parse_integer("shape " + name, word.substr(sign + 1), {.least = 1});
  }
  return extents;
}

kernels::DType parse_dtype(std::string_view text) {
  constexpr std::string_view kNames[] = {"f32", "f16", "bf16"};
  return *kernels::parse_dtype(parse_word("dtype", text, kNames));
}

CommandLine command_line(KernelsBenchOptions& options) {
  CommandLine line{.command = "gradring bench kernels", .options = {}};
  const auto word = [](const char* name, const char* shown, const char* help, auto read) {
    return CommandOption{.name = name, .value = shown, .help = help, .read = read};
  };
  line.options = {
      word("device", "cpu|cuda[:i]", "where they run [cpu]",
           [&](std::string_view text) { options.device = kernels::DeviceId::parse(text).to_string(); }),
      word("op", "NAME", "one operation rather than all; an unknown name lists them",
           [&](std::string_view text) { options.operation = parse_word("op", text, operation_names()); }),
      text_option("variant", "NAME", "one variant rather than all", options.variant),
      word("shape", "NAME=N,...", "other extents than the seed ConvNet's at batch 64, by the names in the table",
           [&](std::string_view text) { options.extents = parse_shape(text); }),
      word("dtype", "f32|f16|bf16", "of activations and weights [f32]",
           [&](std::string_view text) { options.dtype = parse_dtype(text); }),
      word("seconds", "F", "for each variant, hot and flushed [0.3]",
           [&](std::string_view text) { options.effort.seconds = parse_number("seconds", text, 0); }),
      {.name = "no-peers",
       .help = "without the libraries beside our variants",
       .read = set_switch("no-peers", options.no_peers)},
      {.name = "ncu",
       .help = "print the command line that profiles --op on a GPU, with --variant, --shape, --dtype; run nothing",
       .read = set_switch("ncu", options.ncu)},
      json_option(options.json_file)};
  return line;
}

/// Extents of the same name mean something else in another operation.
void check(const KernelsBenchOptions& options) {
  if (!options.extents.empty() && options.operation.empty())
    throw UsageError("--shape needs --op: extents are those of one operation");
  if (options.ncu && options.operation.empty()) throw UsageError("--ncu needs --op: whose kernels are to be profiled?");
}

}  // namespace

KernelsBenchOptions parse_bench_kernels(std::span<const std::string> args) {
  KernelsBenchOptions options;
  options.help = read_command_line(command_line(options), args).help;
  if (!options.help) check(options);
  return options;
}

std::string bench_kernels_help() {
  KernelsBenchOptions unused;
  return kHead + help_of(command_line(unused).options) + kFoot;
}

}  // namespace gradring::train
