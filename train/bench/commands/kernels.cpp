// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/machine.h"
#include "kernels/bench/measure_case.h"
#include "kernels/bench/statistics.h"
#include "kernels/runtime/nearest_name.h"
#include "nn/backend/cpu/onednn_peers.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/cli/exit_code.h"
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

constexpr const char* kKernelsNotes =
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
    "CPU, too.";

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
                   .notes = kKernelsNotes};
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
void check_options(const KernelsBenchOptions& options) {
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

constexpr double kPerGiga = 1e-9;

std::string_view name_of(kb::Measured::Kind kind) {
  switch (kind) {
    case kb::Measured::Kind::variant: return "variant";
    case kb::Measured::Kind::peer: return "peer";
    case kb::Measured::Kind::plain_loop: return "plain_loop";
  }
  return "";
}

kb::Work work_of(const kb::KernelCase& c) {
  kb::Work work{.footprint_bytes = 0,
                .traffic_bytes = c.bytes,
                .unread_bytes = c.unread_bytes,
                .flops = c.flops,
                .factors = c.factors};
  for (const auto& array : c.arrays) work.footprint_bytes += static_cast<double>(array->bytes());
  return work;
}

/// The library's result if it is correct, else the plain loop's; null without both.
const kb::Measured* yardstick_of(const std::vector<kb::Measured>& results) {
  for (const auto kind : {kb::Measured::Kind::peer, kb::Measured::Kind::plain_loop})
    for (const kb::Measured& result : results)
      if (result.kind == kind && result.right()) return &result;
  return nullptr;
}

/// Prints the GPU resources of each kernel of a call.
void print_launches(const std::vector<kernels::LaunchReport>& launches) {
  for (const kernels::LaunchReport& launch : launches)
    if (launch.resources) fmt::print("      {}\n", to_string(launch));
}

/// The table of `gradring bench kernels`, printed line by line as cases are measured, and kept for --json-file.
class KernelsTable {
 public:
  /// `machine` must outlive the table.
  explicit KernelsTable(kb::Machine& machine) : machine_(machine) {}

  /// Prints the machine's peaks and the column names.
  void begin();
  void add(const kb::KernelCase& c, const std::vector<kb::Measured>& results);

  /// The content for write_bench_file.
  nlohmann::json results();
  /// Counts our variants only; libraries need not keep our tolerances.
  int wrong_variants() const { return wrong_; }

 private:
  nlohmann::json wrong(const kb::Measured& result);
  /// `beside`: the result to compare with, or null.
  nlohmann::json row(const kb::KernelCase& c, const kb::Measured& result, const kb::Measured* beside);

  kb::Machine& machine_;
  std::string limits_;
  nlohmann::json cases_ = nlohmann::json::array();
  int wrong_ = 0;
};

void KernelsTable::begin() {
  limits_ = machine_.limits();
  fmt::print("{}\n\n", limits_);
  fmt::print("{:<24} {:<14} {:>6} {:>9} {:>9} {:>7} {:>8} {:>6} {:>7}   {:>9} {:>9} {:>6} {:>7}\n", "", "", "error",
             "hot us", "p95", "GB/s", "GFLOP/s", "roof", "x peer", "flushed", "p95", "roof", "x peer");
}

void KernelsTable::add(const kb::KernelCase& c, const std::vector<kb::Measured>& results) {
  fmt::print("{} [{}] {}\n", c.name, c.shape, name_of(c.dtype));
  const kb::Measured* beside = yardstick_of(results);
  nlohmann::json variants = nlohmann::json::array();
  for (const kb::Measured& result : results)
    variants.push_back(result.right() ? row(c, result, beside) : wrong(result));
  flush_standard_output();
  cases_.push_back({{"name", c.name},
                    {"shape", c.shape},
                    {"dtype", name_of(c.dtype)},
                    {"bytes", c.bytes},
                    {"flops", c.flops},
                    {"variants", variants}});
}

nlohmann::json KernelsTable::results() { return {{"limits", limits_}, {"cases", cases_}}; }

nlohmann::json KernelsTable::wrong(const kb::Measured& result) {
  if (!result.failure.empty()) {
    fmt::print("  {:<36} FAILED: {}\n", result.name, result.failure);
    return {{"name", result.name}, {"kind", name_of(result.kind)}, {"failure", result.failure}, {"right", false}};
  }
  if (result.kind == kb::Measured::Kind::variant) ++wrong_;
  fmt::print("  {:<36} WRONG: an error of {:.3g} times what is allowed\n", result.name, result.error);
  return {{"name", result.name},
          {"kind", name_of(result.kind)},
          {"error", std::min(result.error, 1e300)},
          {"right", false}};
}

nlohmann::json KernelsTable::row(const kb::KernelCase& c, const kb::Measured& result, const kb::Measured* beside) {
  const double hot = result.hot.median;
  const double flushed = result.flushed.median;
  const double hot_roof = machine_.least_seconds(work_of(c), false) / hot;
  const double flushed_roof = machine_.least_seconds(work_of(c), true) / flushed;
  const auto times = [beside](double seconds, const kb::Statistics kb::Measured::*way) {
    return beside ? fmt::format("{:.2f}", seconds / (beside->*way).median) : std::string();
  };
  fmt::print(
      "  {:<36} {:>6.2f} {:>9.1f} {:>9.1f} {:>7.1f} {:>8} {:>4.0f} % {:>7}   {:>9.1f} {:>9.1f} {:>4.0f} % {:>7}\n",
      result.name, result.error, hot * kMicroseconds, result.hot.p95 * kMicroseconds, c.bytes / hot * kPerGiga,
      c.flops > 0 ? fmt::format("{:.1f}", c.flops / hot * kPerGiga) : "", 100 * hot_roof,
      times(hot, &kb::Measured::hot), flushed * kMicroseconds, result.flushed.p95 * kMicroseconds, 100 * flushed_roof,
      times(flushed, &kb::Measured::flushed));
  print_launches(result.launches);
  nlohmann::json json = {{"name", result.name},
                         {"kind", name_of(result.kind)},
                         {"error", result.error},
                         {"right", true},
                         {"hot_microseconds", to_json(result.hot, kMicroseconds)},
                         {"hot_share_of_roof", hot_roof},
                         {"flushed_microseconds", to_json(result.flushed, kMicroseconds)},
                         {"flushed_share_of_roof", flushed_roof}};
  if (beside) json[fmt::format("times_{}", name_of(beside->kind))] = hot / beside->hot.median;
  for (const kernels::LaunchReport& launch : result.launches) json["launches"].push_back(to_json(launch));
  return json;
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

void run(KernelsBenchOptions& options) {
  check_options(options);
  if (options.ncu) {
    fmt::print("{}\n", ncu_command(options, own_program()));
    return;
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
      const auto results = kb::measure(c, *compute.device, *stream, *machine, options.effort, options.variant);
      if (!results.empty()) table.add(c, results);
    }
  write_bench_file(options.json_file, "kernels", provenance, table.results());
  if (table.wrong_variants() > 0) throw Error(fmt::format("{} results are wrong", table.wrong_variants()));
}

}  // namespace

const Command kBenchKernels =
    make_command<KernelsBenchOptions>("kernels", "correctness and speed of every kernel variant");

}  // namespace gradring::train
