// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/bench/all_reduce_bench.h"
#include "data/datasets/open_dataset.h"
#include "kernels/bench/statistics.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/bench/commands/step_options.h"
#include "train/bench/counted_step.h"
#include "train/bench/ranks.h"
#include "train/bench/step_bench.h"
#include "train/core/config/train_config.h"
#include "train/core/setup/compute.h"
#include "train/core/setup/rendezvous.h"
#include "train/core/trainer/from_config.h"
#include "train/launch/launcher.h"
#include "train/launch/workers/worker_environment.h"
#include "train/options/exit_code.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

constexpr std::chrono::milliseconds kStepRankTimeout = std::chrono::minutes(2);

double mebibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1024 * 1024); }

void print_row(const std::string& name, const kernels::bench::Statistics& seconds, const StepBenchOptions& options,
               double step) {
  const double median = seconds.median * kMicroseconds;
  print_text("{:<44} {:>9.0f} {:>9.0f} {:>9.0f} {:>7} {:>10.2f} {:>6.1f} %\n", name, seconds.least * kMicroseconds,
             median, seconds.p95 * kMicroseconds, noise_text(seconds),
             median / static_cast<double>(options.spec.batch_size), 100 * seconds.median / step);
}

/// What one batch size gave on this rank, and the slowest rank's time of each step.
struct RankReport {
  bench::StepReport report;
  kernels::bench::Statistics slowest;
  int world_size = 1;
};

void print_times(const RankReport& of_rank, const StepBenchOptions& options) {
  const bench::StepReport& report = of_rank.report;
  const auto& step = report.times.step;
  print_text("{:<44} {:>9} {:>9} {:>9} {:>7} {:>10} {:>8}\n", "", "least us", "median us", "p95 us", "noise",
             "us/sample", "share");
  for (const auto& part : report.times.parts) print_row(part.name, part.seconds, options, step.median);
  print_row("whole step", step, options, step.median);
  if (of_rank.world_size > 1) print_row("slowest rank", of_rank.slowest, options, step.median);
  print_text("\n{:.0f} samples a second{}\n",
             static_cast<double>(options.spec.batch_size * of_rank.world_size) / of_rank.slowest.median,
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
  return {{"model", options.spec.model},
          {"dataset", options.dataset},
          {"batch_size", options.spec.batch_size},
          {"backend", backend.name()},
          {"precision", precision_name(options.spec.precision)},
          {"threads", options.threads},
          {"device", options.device},
          {"ranks", of_rank.world_size},
          {"comm", word_of(options.comm)},
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

/// Costs and gains of activation checkpointing.
struct Comparison {
  const bench::StepReport& kept;
  const bench::StepReport& cut;

  double times_time() const { return cut.times.step.median / kept.times.step.median; }
  double times_bytes(std::size_t nn::ProgramMemory::*part) const {
    return static_cast<double>(cut.program.*part) / static_cast<double>(kept.program.*part);
  }
};

void print_comparison(const Comparison& comparison, const StepBenchOptions& options) {
  using Memory = nn::ProgramMemory;
  const auto row = [](const std::string& name, const bench::StepReport& report) {
    print_text("{:<44} {:>9.0f} {:>12.1f} {:>15.1f} {:>9.1f}\n", name, report.times.step.median * kMicroseconds,
               mebibytes(report.program.activations), mebibytes(report.program.activation_gradients),
               mebibytes(report.program.workspace));
  };
  print_text("\n{:<44} {:>9} {:>12} {:>15} {:>9}\n", "in turns; memory in MiB", "median us", "activations",
             "their gradients", "workspace");
  row("all activations kept", comparison.kept);
  row(fmt::format("--checkpoint-activations {}: {} segments", show_checkpointing(options.checkpointing),
                  comparison.cut.segments),
      comparison.cut);
  print_text("{:<44} {:>8.2f}x {:>11.2f}x {:>14.2f}x\n", "ratio", comparison.times_time(),
             comparison.times_bytes(&Memory::activations), comparison.times_bytes(&Memory::activation_gradients));
}

nlohmann::json results_of(const Comparison& comparison) {
  return {{"segments", comparison.cut.segments},
          {"step_microseconds", to_json(comparison.cut.times.step, kMicroseconds)},
          {"activation_bytes", comparison.cut.program.activations},
          {"loss", comparison.cut.loss},
          {"times_time", comparison.times_time()},
          {"times_activation_bytes", comparison.times_bytes(&nn::ProgramMemory::activations)}};
}

/// What this rank computes and communicates with.
struct StepRank {
  const Compute& compute;
  comm::ProcessGroup& group;
  const data::Dataset& dataset;
  bool counts = false;  ///< with --counters

  bool leads() const { return group.rank() == 0; }
  bench::StepBenchParts parts() const {
    return {.device = *compute.device,
            .backend = *compute.backend,
            .dataset = dataset,
            .kernels = compute.module ? &compute.kernels : nullptr,
            .group = &group,
            .counter = counts ? compute.simulator : nullptr};
  }
};

bench::MeasurementKey key_of(const StepBenchOptions& options, const StepRank& rank) {
  return {{"model", options.spec.model},
          {"dataset", options.dataset},
          {"batch_size", std::to_string(options.spec.batch_size)},
          {"optimizer", std::string(word_of(options.spec.optimizer.kind))},
          {"device", kind_of(rank.compute)},
          {"backend", std::string(rank.compute.backend->name())},
          {"precision", precision_name(options.spec.precision)},
          {"threads", std::to_string(options.threads)},
          {"ranks", std::to_string(rank.group.world_size())},
          {"comm", rank.group.world_size() > 1 ? std::string(word_of(options.comm)) : "none"}};
}

/// Of a real device: a simulated GPU's times tell nothing.
void add_measurements(bench::BenchRun& run, const RankReport& of_rank, const bench::MeasurementKey& key) {
  const bench::StepTimes::Table& times = of_rank.report.times;
  for (const auto& part : times.parts)
    run.add(in_microseconds(bench::joined(key, {{"part", part.name}}), part.seconds));
  run.add(in_microseconds(bench::joined(key, {{"part", "whole step"}}), times.step));
  if (of_rank.world_size > 1) run.add(in_microseconds(bench::joined(key, {{"part", "slowest rank"}}), of_rank.slowest));
}

RankReport with_all_ranks(bench::StepReport report, comm::ProcessGroup& group) {
  const auto slowest = comm::bench::slowest_of_all_ranks(group, report.times.step.samples);
  return {
      .report = std::move(report), .slowest = kernels::bench::statistics_of(slowest), .world_size = group.world_size()};
}

/// Prints what a step executes, and adds it to the results.
void add_counters(nlohmann::json& results, const std::vector<simulated_gpu::CountedWork>& work,
                  const StepBenchOptions& options, const bench::MeasurementKey& key, bench::BenchRun& run) {
  const bench::StepTotal total = bench::total_of(work, options.excluded);
  print_text("\nOne more step, counted: docs/counters.md says what each column means\n{}",
             bench::step_table(work, total));
  results.update(bench::to_json(work, total));
  const auto instructions = static_cast<double>(total.all.warp_instructions);
  run.add({.key = bench::joined(key, {{"counter", "warp instructions"}}),
           .unit = "instructions",
           .samples = {instructions}});
  run.add({.key = bench::joined(key, {{"counter", "bound of the critical path"}}),
           .samples = {total.critical_path.bound_seconds * kMicroseconds}});
}

/// Measures one batch size. Collective; `run`: rank 0's.
nlohmann::json measure_steps(const StepBenchOptions& options, const StepRank& rank, bench::BenchRun* run) {
  if (rank.leads())
    print_text("\n{} on {}, batch {}, {} steps; device {}, backend {}, {}, threads {}{}\n\n", options.spec.model,
               options.dataset, options.spec.batch_size, options.spec.steps, shown_device(rank.compute),
               rank.compute.backend->name(), precision_name(options.spec.precision), options.threads,
               rank.group.world_size() > 1
                   ? fmt::format("; {} ranks over {}", rank.group.world_size(), word_of(options.comm))
                   : "");
  const bool alone = options.checkpointing.kind == nn::Checkpointing::Kind::none;
  bench::StepBenchSpec spec = options.spec;
  spec.checkpointing = options.checkpointing;
  std::optional<bench::StepReport> cut;
  bench::StepReport kept;
  if (alone)
    kept = bench::bench_steps(options.spec, rank.parts());
  else
    std::tie(kept, cut) = bench::bench_steps_in_turns(options.spec, spec, rank.parts());
  const RankReport report = with_all_ranks(std::move(kept), rank.group);
  if (!run) return {};
  const bool is_real = rank.compute.simulator == nullptr;
  if (is_real) {
    print_times(report, options);
    add_measurements(*run, report, key_of(options, rank));
  }
  print_loss_and_memory(report.report);
  nlohmann::json results = results_of(report, options, *rank.compute.backend);
  if (cut) {
    print_comparison(Comparison{report.report, *cut}, options);
    results["checkpointed"] = results_of(Comparison{report.report, *cut});
    const std::string part = "whole step, --checkpoint-activations " + show_checkpointing(options.checkpointing);
    if (is_real) run->add(in_microseconds(bench::joined(key_of(options, rank), {{"part", part}}), cut->times.step));
  }
  if (rank.counts) add_counters(results, report.report.counted, options, key_of(options, rank), *run);
  flush_standard_output();
  return results;
}

/// A simulated GPU has no times: what a step executes is its result. Not of two programs, nor with collectives, which cannot
/// be counted, unless the user asks for it.
bool counts_steps(const StepBenchOptions& options, const Compute& compute, int world_size) {
  const bool is_one_program = options.checkpointing.kind == nn::Checkpointing::Kind::none;
  return options.simulated.counters || (compute.simulator && is_one_program && world_size == 1);
}

/// All batch sizes on this rank.
void run_step_rank(StepBenchOptions& options, const WorkerEnvironment& environment) {
  const unsigned threads = threads_of_rank(options.threads, environment, system_variable);
  options.threads = threads;
  const Compute compute = make_compute({.device = options.device,
                                        .simulate_gpu = options.simulated.card,
                                        .simulate_seed = options.simulated.seed,
                                        .backend = options.backend,
                                        .threads = threads,
                                        .local_rank = environment.local_rank});
  options.spec.precision = dtype_of(options.precision, compute.device->id());
  options.device = shown_device(compute);
  const auto dataset = data::open_dataset(options.dataset, data::Split::train, options.data_dir);
  const auto timeout = compute.simulator ? default_timeout(compute.simulated) : kStepRankTimeout;
  const Ranks ranks = make_group(environment, {.timeout = timeout, .comm = options.comm}, &compute);
  if (options.comm == TransportKind::automatic)
    options.comm = compute.module ? TransportKind::nccl : TransportKind::shm;
  const StepRank rank{.compute = compute,
                      .group = *ranks.group,
                      .dataset = *dataset,
                      .counts = counts_steps(options, compute, ranks.group->world_size())};
  const double begin = bench::processor_seconds_of_process();
  std::optional<bench::BenchRun> run;
  if (rank.leads()) {
    run.emplace("step", options.common.files, gpu_of(compute));
    print_text("{}\n", run->title());
    for (const std::string& remark : compute.remarks) print_text("{}\n", remark);
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const std::int64_t batch_size : options.batch_sizes) {
    options.spec.batch_size = batch_size;
    rows.push_back(measure_steps(options, rank, run ? &*run : nullptr));
  }
  check_simulation(compute);
  const double others = bench::processor_seconds_of_others(*ranks.group, begin);
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
  set_default_steps(options);
  if (options.common.list) {
    list_steps(options);
    return kOk;
  }
  bench::check_files(options.common.files);
  if (options.nprocs > 1 && !system_variable("RANK")) {
    std::vector<std::string> command = {"bench", "step"};
    command.insert(command.end(), args.begin(), args.end());
    return spawn_ranks(options.nprocs, command);
  }
  const auto environment = WorkerEnvironment::from_environment(system_variable);
  if (options.nprocs && options.nprocs != environment.world_size)
    throw UsageError(fmt::format("--nprocs is {}, but the launcher started {} ranks: leave it out", options.nprocs,
                                 environment.world_size));
  run_step_rank(options, environment);
  return kOk;
}

}  // namespace

const Command kBenchStep{.name = "step",
                         .help = "duration of a training step and of its parts",
                         .run = run_step,
                         .describe = describe<StepBenchOptions>};

}  // namespace gradring::train
