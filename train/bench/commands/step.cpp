// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/bench/collective_bench.h"
#include "data/datasets/open_dataset.h"
#include "kernels/bench/statistics.h"
#include "nn/models/model.h"
#include "nn/program/activation_memory.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/bench/counted_step.h"
#include "train/bench/ranks.h"
#include "train/bench/step_bench.h"
#include "train/bench/sweep.h"
#include "train/core/config/options.h"
#include "train/core/config/resolve.h"
#include "train/core/config/train_config.h"
#include "train/core/setup/compute.h"
#include "train/core/setup/rendezvous.h"
#include "train/core/trainer/from_config.h"
#include "train/options/exit_code.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/view/runs/text_table.h"

namespace gradring::train {
namespace {

using kernels::bench::Statistics;

constexpr std::chrono::milliseconds kStepRankTimeout = std::chrono::minutes(2);

struct StepBenchOptions {
  bench::StepBenchSpec spec;
  std::optional<std::int64_t> steps, warmup;  ///< if given
  nn::Checkpointing checkpointing;
  std::vector<std::int64_t> batch_sizes = {256};
  std::string device = "cpu";
  SimulatedGpuOptions simulated;
  std::vector<std::string> excluded;  ///< from the total of the counters
  BackendKind backend{};
  bool autotune = false;
  int nprocs = 0;  ///< 0: not given
  TransportKind comm{};
  Precision precision{};
  TrainConfig data;
  std::int64_t threads = 1;
  CommonBenchOptions common;

  bool is_checkpointed() const { return checkpointing.kind != nn::Checkpointing::Kind::none; }
};

CommandLine command_line(StepBenchOptions& options) {
  return {
      .command = "gradring bench step",
      .purpose = "duration of a training step, and of its parts",
      .usage = {"gradring bench step [OPTIONS]", "gradring launch --nproc-per-node N bench step [OPTIONS]"},
      .options = with_common_options(
          dataset_options(
              options.data,
              {{.name = "model",
                .value = find_option("model")->value,
                .help = "model architecture: a built-in one, or a file (default convnet)",
                .read = [&](std::string_view text) { options.spec.model = named_model(std::string(text)); }},
               value_option("batch-size", "N",
                            "samples per rank and step (default 256), or a sweep: 16:512:*2, 16:64:+16",
                            bench::parse_values, options.batch_sizes),
               text_option("device", "auto|cpu|cuda[:I]", "device (default cpu)", options.device),
               simulate_gpu_option(options.simulated),
               simulate_seed_option(options.simulated),
               counters_option(options.simulated),
               annotate_option(options.simulated),
               annotate_with_option(options.simulated),
               source_root_option(options.simulated),
               {.name = "counters-exclude",
                .value = "NAME",
                .help =
                    "node of the step's graph that --counters leaves out of the total, if it cannot be counted; may "
                    "be repeated",
                .read = [&](std::string_view text) { options.excluded.emplace_back(text); }},
               choice_option("backend", "implementation of the layers (default auto)", options.backend),
               switch_option("autotune",
                             "choice of kernels and libraries for each layer, as by gradring train --autotune; on a "
                             "GPU, for one rank",
                             options.autotune),
               count_option("nprocs", "ranks, each a process (default 1, or the launcher's)", 1, options.nprocs),
               choice_option("comm", "transport between ranks (default auto: shm on the CPU, nccl on GPUs)",
                             options.comm),
               choice_option("precision", "compute type of the layers (default auto)", options.precision),
               {.name = "checkpoint-activations",
                .value = std::string(kCheckpointingValue),
                .help = "activation checkpointing as in gradring train, measured alternately with none (default none)",
                .read =
                    [&](std::string_view text) {
                      read_checkpointing("checkpoint-activations", text, options.checkpointing);
                    }},
               value_option("activation-budget-mb", "F",
                            "memory limit for activations in MiB with auto; 0: as little as possible (default 0)",
                            parse_budget, options.checkpointing.budget_bytes),
               choice_option("optimizer", "optimizer (default adam)", options.spec.optimizer.kind),
               count_option("threads", "compute threads; 0: OMP_NUM_THREADS, or all usable processors (default 1)", 0,
                            options.threads),
               count_option("steps", "measured steps (default 50; 1 on a simulated GPU)", 1, options.steps),
               count_option("warmup", "steps before the measured ones (default 10; 2 on a simulated GPU)", 0,
                            options.warmup)}),
          options.common),
      .notes =
          "With several ranks the table is rank 0's; \"slowest rank\" is, step by step, the longest time of all. On a "
          "GPU, kernels run asynchronously: the step is timed as a whole, as the mean of eight. gradring bench kernels "
          "times each kernel there. On a simulated GPU, one rank prints what a step executes, as with --counters, and "
          "no times."};
}

void check_options(const StepBenchOptions& options) {
  check_counters(options.simulated);
  if (!options.excluded.empty() && !is_simulated(options.simulated.card))
    throw UsageError(
        "--counters-exclude is for the counters of a simulated GPU: add --device cuda --simulate-gpu h100");
  if (options.simulated.counts() && options.is_checkpointed())
    throw UsageError("--counters counts one program, but --checkpoint-activations compares two: leave one out");
}

/// What could be measured here, and what is missing for the rest.
void list_steps(const StepBenchOptions& options) {
  print_list("--model:", nn::model_names());
  print_list("--dataset:", data::dataset_names());
  const std::string missing = missing_gpu();
  const std::string gpu = missing.empty() ? "" : ", not available here: " + missing;
  print_list("--device, --backend:", {"cpu   cpu (oneDNN and our kernels), reference", "cuda  cuda" + gpu});
  print_list("--precision:", {"fp32", "fp16", "bf16"});
  print_list("--comm, for --nprocs 2 or more:", {"shm   CPU", "tcp   CPU", "nccl  GPU" + gpu});
  print_list("batch sizes:", options.batch_sizes);
}

double mebibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1024 * 1024); }

std::string microseconds(double seconds) { return fmt::format("{:.0f}", seconds * kMicroseconds); }

/// What one batch size gave on this rank, and the slowest rank's time of each step.
struct RankReport {
  bench::StepReport report;
  Statistics slowest;
  int world_size = 1;

  /// The parts of a step, and the step.
  std::vector<std::pair<std::string, const Statistics*>> times() const {
    std::vector<std::pair<std::string, const Statistics*>> all;
    for (const auto& part : report.times.parts) all.emplace_back(part.name, &part.seconds);
    all.emplace_back("whole step", &report.times.step);
    if (world_size > 1) all.emplace_back("slowest rank", &slowest);
    return all;
  }
};

void print_times(const RankReport& of_rank, const StepBenchOptions& options) {
  const auto batch_size = static_cast<double>(options.spec.batch_size);
  TextTable table = TextTable::with({""}, {"least us", "median us", "p95 us", "noise", "us/sample", "share"});
  for (const auto& [name, seconds] : of_rank.times())
    table.rows.push_back({name, microseconds(seconds->least), microseconds(seconds->median), microseconds(seconds->p95),
                          noise_text(*seconds), fmt::format("{:.2f}", seconds->median * kMicroseconds / batch_size),
                          fmt::format("{:.1f} %", 100 * seconds->median / of_rank.report.times.step.median)});
  print_text("{}\n{:.0f} samples a second{}\n", table.text(), batch_size * of_rank.world_size / of_rank.slowest.median,
             of_rank.world_size > 1 ? fmt::format(" over {} ranks", of_rank.world_size) : "");
}

void print_loss_and_memory(const bench::StepReport& report) {
  print_text("Loss after the last step {:.4f}\n", report.loss);
  print_text(
      "Memory: program {:.1f} MiB (activations {:.1f}, their gradients {:.1f}, workspace {:.1f}); resident {:.1f} MiB "
      "before the steps, {:.1f} MiB after, never above {:.1f} MiB\n",
      mebibytes(report.program.total()), mebibytes(report.program.activations),
      mebibytes(report.program.activation_gradients), mebibytes(report.program.workspace),
      mebibytes(report.resident_before_bytes), mebibytes(report.resident.now_bytes),
      mebibytes(report.resident.most_bytes));
}

nlohmann::json results_of(const RankReport& of_rank, const StepBenchOptions& options, const nn::Backend& backend) {
  const bench::StepReport& report = of_rank.report;
  nlohmann::json parts = nlohmann::json::array();
  for (const auto& part : report.times.parts)
    parts.push_back({{"name", part.name}, {"microseconds", to_json(part.seconds, kMicroseconds)}});
  return {{"model", nn::name_of(options.spec.model)},
          {"dataset", options.data.dataset},
          {"batch_size", options.spec.batch_size},
          {"backend", backend.name()},
          {"precision", precision_name(options.spec.precision)},
          {"threads", options.threads},
          {"device", options.device},
          {"ranks", of_rank.world_size},
          {"comm", word_of(options.comm)},
          {"autotune", options.autotune},
          {"slowest_rank_microseconds", to_json(of_rank.slowest, kMicroseconds)},
          {"step_microseconds", to_json(report.times.step, kMicroseconds)},
          {"parts", parts},
          {"loss", report.loss},
          {"program_bytes", report.program.total()},
          {"activation_bytes", report.program.activations},
          {"activation_gradient_bytes", report.program.activation_gradients},
          {"workspace_bytes", report.program.workspace},
          {"resident_before_bytes", report.resident_before_bytes},
          {"resident_after_bytes", report.resident.now_bytes},
          {"resident_most_bytes", report.resident.most_bytes}};
}

/// Prints costs and gains of activation checkpointing, and returns them.
nlohmann::json compare(const bench::StepReport& kept, const bench::StepReport& cut, const StepBenchOptions& options) {
  using Memory = nn::ProgramMemory;
  TextTable table =
      TextTable::with({"in turns; memory in MiB"}, {"median us", "activations", "their gradients", "workspace"});
  const auto add = [&](const std::string& name, const bench::StepReport& report) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    cells = {name, microseconds(report.times.step.median)};
    for (const auto part : {&Memory::activations, &Memory::activation_gradients, &Memory::workspace})
      cells.push_back(fmt::format("{:.1f}", mebibytes(report.program.*part)));
  };
  add("all activations kept", kept);
  add(fmt::format("--checkpoint-activations {}: {} segments", show_checkpointing(options.checkpointing), cut.segments),
      cut);
  const double time = cut.times.step.median / kept.times.step.median;
  const auto bytes = [&](std::size_t Memory::*part) {
    return static_cast<double>(cut.program.*part) / static_cast<double>(kept.program.*part);
  };
  table.rows.push_back({"ratio", fmt::format("{:.2f}x", time), fmt::format("{:.2f}x", bytes(&Memory::activations)),
                        fmt::format("{:.2f}x", bytes(&Memory::activation_gradients)), ""});
  print_text("\n{}", table.text());
  return {{"segments", cut.segments},
          {"step_microseconds", to_json(cut.times.step, kMicroseconds)},
          {"activation_bytes", cut.program.activations},
          {"loss", cut.loss},
          {"times_time", time},
          {"times_activation_bytes", bytes(&Memory::activations)}};
}

bench::MeasurementKey key_of(const StepBenchOptions& options, const Compute& compute, int ranks) {
  return {{"model", nn::name_of(options.spec.model)},
          {"dataset", options.data.dataset},
          {"batch_size", std::to_string(options.spec.batch_size)},
          {"optimizer", std::string(word_of(options.spec.optimizer.kind))},
          {"device", kind_of(compute)},
          {"backend", std::string(compute.backend->name())},
          {"precision", precision_name(options.spec.precision)},
          {"threads", std::to_string(options.threads)},
          {"ranks", std::to_string(ranks)},
          {"comm", ranks > 1 ? std::string(word_of(options.comm)) : "none"}};
}

/// Prints what a step executes, and adds it to the results.
void add_counters(nlohmann::json& results, const std::vector<simulated_gpu::CountedWork>& work,
                  const StepBenchOptions& options, const bench::MeasurementKey& key, bench::BenchRun& run) {
  const bench::StepTotal total = bench::total_of(work, options.excluded);
  print_text("\nOne more step, counted: docs/counters.md says what each column means\n{}",
             bench::step_table(work, total));
  results.update(bench::to_json(work, total));
  if (const bench::AnnotationSpec& annotation = options.simulated.annotation; annotation.is_wanted()) {
    bench::AnnotatedSource annotated(annotation);
    for (const simulated_gpu::CountedWork& each : work)
      if (each.launch) annotated.add(*each.launch);
    annotated.write();
  }
  for (bench::BenchMeasurement& measured : bench::measurements_of(key, work, total)) run.add(std::move(measured));
}

/// Measures one batch size. Collective; `run`: rank 0's, else null.
nlohmann::json measure_steps(const StepBenchOptions& options, const Compute& compute,
                             const bench::StepBenchParts& parts, bench::BenchRun* run) {
  const int ranks = parts.group->world_size();
  if (run)
    print_text("\n{} on {}, batch {}, {} steps; device {}, backend {}, {}, threads {}{}\n\n",
               nn::name_of(options.spec.model), options.data.dataset, options.spec.batch_size, options.spec.steps,
               shown_device(compute), compute.backend->name(), precision_name(options.spec.precision), options.threads,
               ranks > 1 ? fmt::format("; {} ranks over {}", ranks, word_of(options.comm)) : "");
  std::vector<bench::StepBenchSpec> specs = {options.spec};
  if (options.is_checkpointed()) {
    specs.push_back(options.spec);
    specs.back().checkpointing = options.checkpointing;
  }
  std::vector<bench::StepReport> reports = bench::bench_steps(specs, parts);
  RankReport report{.report = std::move(reports.front()), .slowest = {}, .world_size = ranks};
  report.slowest =
      kernels::bench::statistics_of(comm::bench::slowest_of_all_ranks(*parts.group, report.report.times.step.samples));
  if (!run) return {};
  const bench::MeasurementKey key = key_of(options, compute, ranks);
  const auto add = [&](const std::string& part, const Statistics& seconds) {
    run->add(in_microseconds(bench::joined(key, {{"part", part}}), seconds));
  };
  const bool is_real = compute.simulator == nullptr;  // a simulated GPU's times tell nothing
  if (is_real) {
    print_times(report, options);
    for (const auto& [part, seconds] : report.times()) add(part, *seconds);
  }
  print_loss_and_memory(report.report);
  nlohmann::json results = results_of(report, options, *compute.backend);
  if (options.is_checkpointed()) {
    const bench::StepReport& cut = reports.back();
    results["checkpointed"] = compare(report.report, cut, options);
    if (is_real)
      add("whole step, --checkpoint-activations " + show_checkpointing(options.checkpointing), cut.times.step);
  }
  if (parts.counter) add_counters(results, report.report.counted, options, key, *run);
  flush_standard_output();
  return results;
}

/// All batch sizes on this rank.
void run_step_rank(StepBenchOptions& options, const WorkerEnvironment& environment) {
  const unsigned threads = threads_of_rank(options.threads, environment, system_variable);
  options.threads = threads;
  const Compute compute = make_compute({.device = options.device,
                                        .simulate_gpu = options.simulated.card,
                                        .simulate_seed = options.simulated.seed,
                                        .backend = options.backend,
                                        .autotune = options.autotune,
                                        .threads = threads,
                                        .local_rank = environment.local_rank});
  if (options.autotune && !compute.module)
    throw UsageError("--autotune is for the kernels of a GPU, but the device is cpu: add --device cuda");
  options.spec.precision = dtype_of(options.precision, compute.device->id());
  options.device = shown_device(compute);
  const auto dataset = open_chosen(options.data);
  const auto timeout = compute.simulator ? default_timeout(compute.simulated) : kStepRankTimeout;
  const Ranks ranks = make_group(environment, {.timeout = timeout, .comm = options.comm}, &compute);
  if (options.comm == TransportKind::automatic)
    options.comm = compute.module              ? TransportKind::nccl
                   : environment.spans_nodes() ? TransportKind::tcp
                                               : TransportKind::shm;
  // A simulated GPU has no times: what a step executes is its result. Not of two programs, nor with collectives, which
  // cannot be counted, unless the user asks for it.
  const bool counts = options.simulated.counts() || (!options.is_checkpointed() && ranks.group->world_size() == 1);
  const bench::StepBenchParts parts{.device = *compute.device,
                                    .backend = *compute.backend,
                                    .dataset = *dataset,
                                    .kernels = compute.module ? &compute.kernels : nullptr,
                                    .group = ranks.group.get(),
                                    .counter = counts ? compute.simulator : nullptr,
                                    .lists = options.simulated.annotation.is_wanted()};
  const double begin = bench::processor_seconds_of_process();
  std::optional<bench::BenchRun> run;
  if (ranks.group->rank() == 0) {
    run.emplace("step", options.common.files, gpu_of(compute));
    print_text("{}\n", run->title());
    for (const std::string& remark : compute.remarks) print_text("{}\n", remark);
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const std::int64_t batch_size : options.batch_sizes) {
    options.spec.batch_size = batch_size;
    rows.push_back(measure_steps(options, compute, parts, run ? &*run : nullptr));
  }
  check_simulation(compute);
  const double others = bench::processor_seconds_of_others(*ranks.group, environment, begin);
  if (run) {
    run->add_processor_seconds(others);
    nlohmann::json results = rows.front();
    if (rows.size() > 1) results["sweep"] = rows;
    run->finish(results);
  }
  ranks.group->barrier_on_host();
}

int run_step(Arguments args, KeptAlive&) {
  StepBenchOptions options;
  if (!words_or_help(command_line(options), args)) return kOk;
  check_options(options);
  // A simulated GPU has no times to repeat: its first step runs eagerly, the second is captured.
  if (is_simulated(options.simulated.card)) options.spec.steps = 1, options.spec.warmup = 2;
  options.spec.steps = options.steps.value_or(options.spec.steps);
  options.spec.warmup = options.warmup.value_or(options.spec.warmup);
  if (options.common.list) {
    list_steps(options);
    return kOk;
  }
  const auto environment = WorkerEnvironment::from_environment(system_variable);
  if (options.autotune && std::max(options.nprocs, environment.world_size) > 1)
    throw UsageError("--autotune measures on one rank, but there are several: leave out --autotune, or run one rank");
  if (environment.rank == 0) bench::check_files(options.common.files);
  return bench::run_as_processes({.name = "step", .args = args, .nprocs = options.nprocs}, environment,
                                 [&] { run_step_rank(options, environment); });
}

}  // namespace

const Command kBenchStep{.name = "step",
                         .help = "duration of a training step and of its parts",
                         .run = run_step,
                         .describe = describe<StepBenchOptions>};

}  // namespace gradring::train
