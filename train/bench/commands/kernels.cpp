// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/nearest_name.h"
#include "kernels/bench/kernel_case.h"
#include "kernels/bench/machine.h"
#include "kernels/bench/measure_case.h"
#include "nn/backend/cpu/onednn_peers.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/kernels_table.h"
#include "train/bench/commands/options.h"
#include "train/bench/counted_bounds.h"
#include "train/bench/sweep.h"
#include "train/core/setup/compute.h"
#include "train/core/trainer/from_config.h"
#include "train/launch/launcher.h"
#include "train/options/environment_variable.h"
#include "train/options/exit_code.h"
#include "train/options/parse_value.h"
#include "train/options/shell_words.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

namespace kb = kernels::bench;

struct KernelsBenchOptions {
  std::string device = "cpu";
  SimulatedGpuOptions simulated;
  std::string operation;                               ///< empty: all
  std::string variant;                                 ///< empty: all
  std::vector<kernels::bench::Extents> shapes = {{}};  ///< of the operation; {}: its default
  kernels::DType dtype = kernels::DType::f32;
  kernels::bench::Effort effort;
  CommonBenchOptions common;
  std::string bounds;     ///< file with counted bounds; empty: not checked
  bool no_peers = false;  ///< measure no libraries
  bool ncu = false;       ///< print the profiler's command instead of measuring
};

constexpr const char* kKernelsNotes =
    "Columns:\n"
    "  error    largest error as a fraction of the tolerance; wrong results are not\n"
    "           timed, nor are variants for GPUs on a CPU, which emulates them\n"
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
    "CPU, too.\n\n"
    "--counters: instructions are those of PTX. docs/counters.md says what each column means.";

std::string parse_operation(std::string_view option, std::string_view text) {
  std::vector<std::string_view> names;
  for (const kb::CaseFamily& family : kb::case_families()) names.push_back(family.operation);
  return parse_word(option, text, names);
}

kernels::DType parse_dtype(std::string_view option, std::string_view text) {
  constexpr std::string_view kNames[] = {"fp32", "fp16", "bf16"};
  const std::string name = parse_word(option, text, kNames);
  return name == "bf16" ? kernels::DType::bf16 : name == "fp16" ? kernels::DType::f16 : kernels::DType::f32;
}

CommandLine command_line(KernelsBenchOptions& options) {
  const auto parse_device = [](std::string_view, std::string_view text) {
    return kernels::DeviceId::parse(text).to_string();
  };
  const auto parse_shapes = [](std::string_view, std::string_view text) { return bench::parse_shapes(text); };
  const auto parse_seconds = [](std::string_view name, std::string_view text) { return parse_number(name, text, 0); };
  return {.command = "gradring bench kernels",
          .purpose = "correctness and speed of every variant of every operation, on one core or on a GPU",
          .options = with_common_options(
              {value_option("device", "cpu|cuda[:I]", "device (default cpu)", parse_device, options.device),
               simulate_gpu_option(options.simulated), simulate_seed_option(options.simulated),
               counters_option(options.simulated), annotate_option(options.simulated),
               annotate_with_option(options.simulated), source_root_option(options.simulated),
               value_option("op", "NAME", "operation (default all); an unknown name lists them", parse_operation,
                            options.operation),
               text_option("variant", "NAME", "variant (default all)", options.variant),
               value_option("shape", "NAME=N,...",
                            "extents by their names in the table (default those of the seed ConvNet at batch size 64); "
                            "sweeps: batch=16:512:*2 doubles, batch=16:64:+16 adds, several make a product",
                            parse_shapes, options.shapes),
               value_option("dtype", "fp32|fp16|bf16", "type of activations and weights (default fp32)", parse_dtype,
                            options.dtype),
               value_option("seconds", "F", "seconds per variant, hot and flushed (default 0.3)", parse_seconds,
                            options.effort.seconds),
               text_option(
                   "bounds", "FILE",
                   "result of --counters on a simulated card like this one; a time below 0.9 of its bound is an error",
                   options.bounds),
               switch_option("no-peers", "no measurement of libraries", options.no_peers),
               switch_option("ncu", "print the Nsight Compute command line that profiles --op on a GPU; no measurement",
                             options.ncu)},
              options.common),
          .notes = kKernelsNotes};
}

/// Extents of the same name differ between operations.
void check_options(const KernelsBenchOptions& options) {
  if (!options.shapes.front().empty() && options.operation.empty())
    throw UsageError("--shape needs --op, the operation whose extents it gives");
  if (options.ncu && is_simulated(options.simulated.card))
    throw UsageError(
        fmt::format("--ncu profiles a GPU, and --simulate-gpu {} needs none: leave one out", options.simulated.card));
  if (!options.common.files.csv.empty() && is_simulated(options.simulated.card) && !options.simulated.counts())
    throw UsageError("--csv-file is a table of times, which a simulated GPU does not have: add --counters, or use -J");
  if (!options.bounds.empty() && is_simulated(options.simulated.card))
    throw UsageError("--bounds checks times, which a simulated GPU does not have: leave it out");
  if (options.ncu && options.operation.empty())
    throw UsageError("--ncu needs --op, the operation whose kernels are profiled");
  if (options.ncu && options.shapes.size() > 1)
    throw UsageError(fmt::format("--ncu profiles one shape, but --shape has {}: choose one", options.shapes.size()));
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
  const std::string dtype = precision_name(options.dtype);
  const std::string what = options.variant.empty() ? options.operation : options.operation + "_" + options.variant;
  std::istringstream profiler(fmt::format(
      "ncu --set full --kernel-name-base function --kernel-name {} --filter-mode per-launch-config --launch-skip {} "
      "--launch-count 1 --force-overwrite --export ncu_{}_{}",
      kernels_of(options.operation), kLaunchesBefore, what, dtype));
  std::vector<std::string> words(std::istream_iterator<std::string>(profiler), {});
  words.insert(words.end(), {program, "bench", "kernels", "--device", options.device == "cpu" ? "cuda" : options.device,
                             "--op", options.operation, "--dtype", dtype, "--seconds", "0", "--no-peers"});
  if (!options.variant.empty()) words.insert(words.end(), {"--variant", options.variant});
  if (const auto& shape = options.shapes.front(); !shape.empty())
    words.insert(words.end(), {"--shape", shape_of(shape)});
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
  Names variants, unsupported;
  for (const kb::CaseFamily& family : families_of(options))
    for (const kb::KernelCase& c : family.cases(make)) {
      for (const auto* candidates : {&c.variants, &c.emulated})
        for (const kb::KernelCase::Candidate& candidate : *candidates) variants.insert(candidate.name);
      unsupported.insert(c.unsupported.begin(), c.unsupported.end());
    }
  for (const auto& [name, value] : options.shapes.front()) check_name("--shape", name, make.extent_names());
  if (options.variant.empty()) return;
  if (!variants.contains(options.variant) && unsupported.contains(options.variant))
    throw UsageError(fmt::format("--variant {} does not compute {} on {}: choose another --dtype or --device",
                                 options.variant, name_of(options.dtype), options.device));
  check_name("--variant", options.variant, variants);
}

/// Why variants of the operation's table are missing among the results.
void print_unsupported(const KernelsBenchOptions& options, const kb::KernelCase& c) {
  if (options.variant.empty() && !c.unsupported.empty())
    print_text("  not for {} on {}: {}\n", name_of(c.dtype), options.device, fmt::join(c.unsupported, ", "));
}

std::unique_ptr<kb::Machine> machine_of(const Compute& compute) {
  return compute.module ? kb::make_gpu_machine(*compute.device, compute.kernels) : kb::make_cpu_machine();
}

/// The tuned libraries of the device; prints which are missing.
std::unique_ptr<kernels::PeerMaker> peers_of(const Compute& compute) {
  if (!compute.module) return nn::make_onednn_peers(*compute.device);
  return compute.module->make_peers(*compute.device,
                                    {.autotune = true,
                                     .has_libraries = compute.simulator == nullptr,
                                     .plan_cache = plan_cache_file(),
                                     .say = [](const std::string& text) { print_text("{}\n", text); }});
}

/// Shape by shape. A case is made when its turn comes: all at once might not fit in memory. Different shapes of a sweep
/// may make equal cases, where an operation has cases without the swept extent: those come once.
template <class Visit>
void for_each_case(const KernelsBenchOptions& options, kb::CaseMaker::World world, const Visit& visit) {
  std::set<std::string> seen;
  for (const kb::Extents& shape : options.shapes) {
    world.extents = shape;
    kb::CaseMaker make(world);
    for (const kb::CaseFamily& family : families_of(options))
      for (const kb::KernelCase& c : kb::cases_with_trials(family, make))
        if (seen.insert(fmt::format("{} {} {}", c.name, c.shape, name_of(c.dtype))).second) visit(c);
  }
}

void list(const KernelsBenchOptions& options, const kb::CaseMaker::World& world) {
  print_text("cases [shape] type: variants, on {}\n", world.device.description());
  for_each_case(options, world, [&](const kb::KernelCase& c) {
    std::vector<std::string> names;
    for (const auto* candidates : {&c.variants, &c.emulated})
      for (const kb::KernelCase::Candidate& variant : *candidates)
        if (options.variant.empty() || variant.name == options.variant)
          names.push_back(variant.name + (candidates == &c.emulated ? " (not timed)" : ""));
    if (!names.empty()) print_text("  {} [{}] {}: {}\n", c.name, c.shape, name_of(c.dtype), fmt::join(names, " "));
  });
}

/// On a simulated GPU, which has no times: correctness, and what the kernels execute.
void check_kernels(const KernelsBenchOptions& options, const Compute& compute, const kb::CaseMaker::World& world) {
  bench::BenchRun run("kernels", options.common.files, gpu_of(compute));
  for (const std::string& remark : compute.remarks) print_text("{}\n", remark);
  const std::clock_t begin = std::clock();
  SimulatedKernels checked(*compute.simulator, kind_of(compute), options.simulated, run);
  for_each_case(options, world, [&](const kb::KernelCase& c) {
    checked.check(c, world.stream, options.variant);
    print_unsupported(options, c);
  });
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  check_simulation(compute);
  checked.write_annotated_source();
  run.finish({{"cases", checked.cases}, {"device", shown_device(compute)}});
  if (checked.wrong > 0) throw Error(fmt::format("{} of {} results are wrong", checked.wrong, checked.count));
  print_text("{} result{}, none wrong; {:.2f} s of CPU\n", checked.count, checked.count == 1 ? "" : "s", seconds);
}

void run(KernelsBenchOptions& options) {
  check_options(options);
  if (options.ncu) {
    print_text("{}\n", ncu_command(options, own_program()));
    return;
  }
  check_counters(options.simulated);
  const bool simulates = is_simulated(options.simulated.card);
  const Compute compute = make_compute({.device = options.device,
                                        .simulate_gpu = options.simulated.card,
                                        .simulate_seed = options.simulated.seed,
                                        .threads = simulates ? threads_of_rank(0, {}, system_variable) : 1});
  const auto stream = compute.device->make_stream(kernels::StreamMode::in_place);
  kb::CaseMaker::World world{.kernels = compute.kernels,
                             .device = *compute.device,
                             .stream = *stream,
                             .dtype = options.dtype,
                             .extents = options.shapes.front()};
  check_names(options, kb::CaseMaker(world));
  if (options.common.list) return list(options, world);
  if (compute.simulator) return check_kernels(options, compute, world);
  const bench::CountedBounds bounds =
      options.bounds.empty() ? bench::CountedBounds() : bench::CountedBounds(bench::read_bench_result(options.bounds));
  const auto machine = machine_of(compute);
  bench::BenchRun run("kernels", options.common.files, gpu_of(compute));
  print_text("{}\n", run.title());
  const auto peers = options.no_peers ? nullptr : peers_of(compute);
  world.peers = peers.get();
  TimedKernels table(*machine, bounds, run);
  for_each_case(options, world, [&](const kb::KernelCase& c) {
    const auto results = kb::measure(c, *compute.device, *stream, *machine, options.effort, options.variant);
    if (results.empty()) return;
    table.add(c, results);
    print_unsupported(options, c);
  });
  run.finish({{"limits", table.limits}, {"cases", table.cases}});
  if (table.wrong > 0) throw Error(fmt::format("{} results are wrong", table.wrong));
}

}  // namespace

const Command kBenchKernels =
    make_command<KernelsBenchOptions>("kernels", "correctness and speed of every kernel variant");

}  // namespace gradring::train
