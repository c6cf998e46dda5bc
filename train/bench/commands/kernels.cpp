// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/measure_case.h"
#include "kernels/bench/statistics.h"
#include "kernels/runtime/nearest_name.h"
#include "nn/backend/cpu/onednn_peers.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/kernels_table.h"
#include "train/bench/commands/options.h"
#include "train/cli/resume_command.h"
#include "train/launch/launcher.h"
#include "train/options/usage_error.h"
#include "train/setup/compute.h"

namespace gradring::train {
namespace {

namespace kb = kernels::bench;

struct KernelsBenchOptions {
  std::string device = "cpu";
  std::string operation;              ///< empty: all
  std::string variant;                ///< empty: all
  kernels::bench::Extents extents{};  ///< of the operation
  kernels::DType dtype = kernels::DType::f32;
  kernels::bench::Effort effort;
  std::string json_file;  ///< empty: none
  bool no_peers = false;  ///< measure no libraries
  bool ncu = false;       ///< print the profiler's command instead of measuring
};

constexpr const char* kNotes =
    "Columns:\n"
    "  error    largest error as a fraction of the tolerance; wrong results are not\n"
    "           timed\n"
    "  hot      arrays in cache as far as they fit\n"
    "  flushed  arrays in no cache; on a GPU the launch is included\n"
    "  roof     fraction of the roofline, whose peaks are measured in this run\n"
    "  x peer   median as a multiple of the library's (cudnn, cublaslt; onednn on a\n"
    "           CPU in fp32), else of a plain loop's (fp32 on a CPU)\n\n"
    "Roofline of a CPU core: the bytes moved (what is overwritten unread counts twice) by the fastest of three plain "
    "loops, or the multiply-adds, whichever takes longer. Of a GPU: the bytes moved by its own copies, or the "
    "multiply-adds of --op peak, in fp32, or for 16 bits on tensor cores by mma.sync; wgmma and libraries may exceed "
    "100 %.\n\n"
    "On a GPU a line for each kernel that a call launches: threads per block, registers per thread, shared memory per "
    "block (static + dynamic), and resident warps per multiprocessor out of the maximum. --json-file has them on a "
    "CPU, "
    "too.";

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
  constexpr std::string_view kNames[] = {"fp32", "fp16", "bf16"};
  if (text == "f32" || text == "f16") return *kernels::parse_dtype(text);  // older spellings
  if (parse_word("dtype", text, kNames) == "bf16") return kernels::DType::bf16;
  return text == "fp32" ? kernels::DType::f32 : kernels::DType::f16;
}

CommandLine command_line(KernelsBenchOptions& options) {
  CommandLine line{.command = "gradring bench kernels",
                   .purpose = "correctness and speed of every variant of every operation, on one core or on a GPU",
                   .options = {},
                   .notes = kNotes};
  const auto word = [](const char* name, const char* shown, const char* help, auto read) {
    return Option{.name = name, .value = shown, .help = help, .read = read};
  };
  line.options = {
      word("device", "cpu|cuda[:I]", "device (default cpu)",
           [&](std::string_view text) { options.device = kernels::DeviceId::parse(text).to_string(); }),
      word("op", "NAME", "operation (default all); an unknown name lists them",
           [&](std::string_view text) { options.operation = parse_word("op", text, operation_names()); }),
      text_option("variant", "NAME", "variant (default all)", options.variant),
      word("shape", "NAME=N,...",
           "extents by their names in the table (default those of the seed ConvNet at batch size 64)",
           [&](std::string_view text) { options.extents = parse_shape(text); }),
      word("dtype", "fp32|fp16|bf16", "type of activations and weights (default fp32)",
           [&](std::string_view text) { options.dtype = parse_dtype(text); }),
      word("seconds", "F", "seconds per variant, hot and flushed (default 0.3)",
           [&](std::string_view text) { options.effort.seconds = parse_number("seconds", text, 0); }),
      switch_option("no-peers", "no measurement of libraries", options.no_peers),
      switch_option("ncu", "print the Nsight Compute command line that profiles --op on a GPU; no measurement",
                    options.ncu),
      json_file_option(options.json_file)};
  return line;
}

/// Extents of the same name differ between operations.
void check(const KernelsBenchOptions& options) {
  if (!options.extents.empty() && options.operation.empty())
    throw UsageError("--shape needs --op, the operation whose extents it gives");
  if (options.ncu && options.operation.empty())
    throw UsageError("--ncu needs --op, the operation whose kernels are profiled");
}

/// Launches of each kernel before the profiled one: measure_case.h checks a result, and then warms up twice.
constexpr int kLaunchesBefore = 3;

/// Kernels are named after their operation (kernels/README.md); partial sums belong to conv2d.
std::string kernels_of(const std::string& operation) {
  return operation == "conv_relu_pool" ? "regex:^(conv_relu_pool|conv2d)_" : "regex:^" + operation + "_";
}

std::string shape_of(const kernels::bench::Extents& extents) {
  std::vector<std::string> words;
  for (const auto& [name, value] : extents) words.push_back(fmt::format("{}={}", name, value));
  return fmt::format("{}", fmt::join(words, ","));
}

/// A shell command that profiles with Nsight Compute: every kernel of the operation once per launch configuration, with
/// all metrics, after the launches that check and warm up. `program` is the path of gradring; the report goes to the
/// working folder.
std::string ncu_command(const KernelsBenchOptions& options, const std::string& program) {
  const std::string dtype(name_of(options.dtype));
  const std::string what = options.variant.empty() ? options.operation : options.operation + "_" + options.variant;
  std::vector<std::string> words = {"ncu",
                                    "--set",
                                    "full",
                                    "--kernel-name-base",
                                    "function",
                                    "--kernel-name",
                                    kernels_of(options.operation),
                                    "--filter-mode",
                                    "per-launch-config",
                                    "--launch-skip",
                                    std::to_string(kLaunchesBefore),
                                    "--launch-count",
                                    "1",
                                    "--force-overwrite",
                                    "--export",
                                    fmt::format("ncu_{}_{}", what, dtype)};
  words.insert(words.end(), {program, "bench", "kernels", "--device", options.device == "cpu" ? "cuda" : options.device,
                             "--op", options.operation, "--dtype", dtype, "--seconds", "0", "--no-peers"});
  if (!options.variant.empty()) words.insert(words.end(), {"--variant", options.variant});
  if (!options.extents.empty()) words.insert(words.end(), {"--shape", shape_of(options.extents)});
  return shell_command(words);
}

using Names = std::set<std::string, std::less<>>;

std::vector<kb::CaseFamily> families_of(const KernelsBenchOptions& options) {
  std::vector<kb::CaseFamily> families;
  std::ranges::copy_if(kb::case_families(), std::back_inserter(families), [&](const kb::CaseFamily& family) {
    return options.operation.empty() || family.operation == options.operation;
  });
  return families;
}

void check_name(const char* option, const std::string& name, const Names& known) {
  if (known.contains(name)) return;
  throw UsageError(fmt::format("{} names '{}', but there is only {}.{}", option, name, fmt::join(known, ", "),
                               did_you_mean(name, std::vector<std::string_view>(known.begin(), known.end()))));
}

/// Called before the measurements: making the cases takes a second, measuring them minutes.
void check_names(const KernelsBenchOptions& options, kb::CaseMaker make) {
  Names variants;
  for (const kb::CaseFamily& family : families_of(options))
    for (const kb::KernelCase& c : family.cases(make))
      for (const kb::KernelCase::Candidate& candidate : c.variants) variants.insert(candidate.name);
  for (const auto& [name, value] : options.extents) check_name("--shape", name, make.extent_names());
  if (!options.variant.empty()) check_name("--variant", options.variant, variants);
}

std::unique_ptr<kb::Machine> machine_of(const Compute& compute) {
  return compute.module ? kb::make_gpu_machine(*compute.device, compute.kernels) : kb::make_cpu_machine();
}

/// The tuned libraries of the device; prints which are missing.
std::unique_ptr<kernels::PeerMaker> peers_of(const Compute& compute) {
  if (!compute.module) return nn::make_onednn_peers(*compute.device);
  return compute.module->make_peers(
      *compute.device, {.autotune = true, .plan_cache = plan_cache_file(), .say = [](const std::string& text) {
                          fmt::print("{}\n", text);
                        }});
}

int run(Arguments args) {
  KernelsBenchOptions options;
  if (!words_or_help(command_line(options), args)) return kOk;
  check(options);
  if (options.ncu) {
    fmt::print("{}\n", ncu_command(options, own_program()));
    return kOk;
  }
  const Compute compute = make_compute({.device = options.device});
  const auto machine = machine_of(compute);
  const auto stream = compute.device->make_stream(kernels::StreamMode::in_place);
  kb::CaseMaker::World world{.kernels = compute.kernels,
                             .device = *compute.device,
                             .stream = *stream,
                             .dtype = options.dtype,
                             .extents = options.extents};
  check_names(options, kb::CaseMaker(world));
  const auto provenance = kb::provenance();
  fmt::print("{}\n", to_string(provenance));
  const auto peers = options.no_peers ? nullptr : peers_of(compute);
  world.peers = peers.get();
  kb::CaseMaker make(world);
  KernelsTable table(*machine);
  table.begin();
  for (const kb::CaseFamily& family : families_of(options))
    for (const kb::KernelCase& c : family.cases(make)) {
      const auto results = kb::measure(c, *stream, *machine, options.effort, options.variant);
      if (!results.empty()) table.add(c, results);
    }
  write_bench_file(options.json_file, "kernels", provenance, table.results());
  if (table.wrong_variants() > 0) throw Error(fmt::format("{} results are wrong", table.wrong_variants()));
  return kOk;
}

}  // namespace

const Command kBenchKernels{.name = "kernels",
                            .help = "correctness and speed of every kernel variant",
                            .run = run,
                            .describe = describe<KernelsBenchOptions, command_line>};

}  // namespace gradring::train
