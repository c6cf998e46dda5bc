// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "data/datasets/open_dataset.h"
#include "nn/models/model.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/bench/step_bench.h"
#include "train/config/train_config.h"
#include "train/setup/compute.h"
#include "train/trainer/from_config.h"

namespace gradring::train {
namespace {

struct StepBenchOptions {
  bench::StepBenchSpec spec;
  nn::Checkpointing checkpointing;
  std::string backend = "auto";
  std::string precision = "auto";
  std::string dataset = "digits";
  std::string data_dir;
  std::int64_t threads = 1;
  std::string json_file;
};

CommandLine command_line(StepBenchOptions& options) {
  return {
      .command = "gradring bench step",
      .purpose = "duration of a training step of one rank, and of its parts",
      .options = dataset_options(
          options.dataset, options.data_dir,
          {choice_option("model", nn::model_names(), "model architecture (default convnet)", options.spec.model),
           count_option("batch-size", "samples per step (default 256)", 1, options.spec.batch_size),
           text_option("backend", "auto|cpu|reference", "implementation of the layers (default auto)", options.backend),
           text_option("precision", "auto|fp32|fp16|bf16", "compute type of the layers (default auto)",
                       options.precision),
           {.name = "checkpoint-activations",
            .value = std::string(kCheckpointingValue),
            .help = "activation checkpointing as in gradring train, measured alternately with none (default none)",
            .read =
                [&](std::string_view text) {
                  read_checkpointing("checkpoint-activations", text, options.checkpointing);
                }},
           {.name = "activation-budget-mb",
            .value = "F",
            .help = "memory limit for activations in MiB with auto; 0: as little as possible (default 0)",
            .read =
                [&](std::string_view text) {
                  options.checkpointing.budget_bytes = parse_budget("activation-budget-mb", text);
                }},
           text_option("optimizer", "adam|adamw|sgd", "optimizer (default adam)", options.spec.optimizer.name),
           count_option("threads", "compute threads; 0: OMP_NUM_THREADS, or all cores (default 1)", 0, options.threads),
           count_option("steps", "measured steps (default 50)", 1, options.spec.steps),
           count_option("warmup", "steps before the measured ones (default 10)", 0, options.spec.warmup),
           json_file_option(options.json_file)})};
}

double mebibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1024 * 1024); }

void print_row(const std::string& name, const kernels::bench::Statistics& seconds, const StepBenchOptions& options,
               double step) {
  const double median = seconds.median * kMicroseconds;
  fmt::print("{:<44} {:>9.0f} {:>9.0f} {:>9.0f} {:>10.2f} {:>6.1f} %\n", name, seconds.least * kMicroseconds, median,
             seconds.p95 * kMicroseconds, median / static_cast<double>(options.spec.batch_size),
             100 * seconds.median / step);
}

void print_report(const bench::StepReport& report, const StepBenchOptions& options) {
  const auto& step = report.times.step;
  fmt::print("{:<44} {:>9} {:>9} {:>9} {:>10} {:>8}\n", "", "least us", "median us", "p95 us", "us/sample", "share");
  for (const auto& part : report.times.parts) print_row(part.name, part.seconds, options, step.median);
  print_row("whole step", step, options, step.median);
  fmt::print("\n{:.0f} samples a second; loss after the last step {:.4f}\n",
             static_cast<double>(options.spec.batch_size) / step.median, report.loss);
  fmt::print(
      "Memory: program {:.1f} MiB (activations {:.1f}, their gradients {:.1f}, workspace {:.1f}); resident {:.1f} MiB "
      "before the steps, {:.1f} MiB after, never above {:.1f} MiB\n",
      mebibytes(report.program.total()), mebibytes(report.program.activations),
      mebibytes(report.program.activation_gradients), mebibytes(report.program.workspace),
      mebibytes(report.resident_before_bytes), mebibytes(report.resident.now_bytes),
      mebibytes(report.resident.most_bytes));
}

nlohmann::json results_of(const bench::StepReport& report, const StepBenchOptions& options,
                          const nn::Backend& backend) {
  nlohmann::json parts = nlohmann::json::array();
  for (const auto& part : report.times.parts)
    parts.push_back({{"name", part.name}, {"microseconds", to_json(part.seconds, kMicroseconds)}});
  return {{"model", options.spec.model},
          {"dataset", options.dataset},
          {"batch_size", options.spec.batch_size},
          {"backend", backend.name()},
          {"precision", precision_name(options.spec.precision)},
          {"threads", options.threads},
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
    fmt::print("{:<44} {:>9.0f} {:>12.1f} {:>15.1f} {:>9.1f}\n", name, report.times.step.median * kMicroseconds,
               mebibytes(report.program.activations), mebibytes(report.program.activation_gradients),
               mebibytes(report.program.workspace));
  };
  fmt::print("\n{:<44} {:>9} {:>12} {:>15} {:>9}\n", "in turns; memory in MiB", "median us", "activations",
             "their gradients", "workspace");
  row("all activations kept", comparison.kept);
  row(fmt::format("--checkpoint-activations {}: {} segments", show_checkpointing(options.checkpointing),
                  comparison.cut.segments),
      comparison.cut);
  fmt::print("{:<44} {:>8.2f}x {:>11.2f}x {:>14.2f}x\n", "ratio", comparison.times_time(),
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

void run(StepBenchOptions& options) {
  const unsigned threads = threads_of_rank(options.threads, WorkerEnvironment{}, system_variable);
  options.threads = threads;
  const Compute compute = make_compute({.device = "cpu", .backend = options.backend, .threads = threads});
  kernels::Device& device = *compute.device;
  nn::Backend& backend = *compute.backend;
  options.spec.precision = precision_named(options.precision, device.id());
  const auto dataset = data::open_dataset(options.dataset, data::Split::train, options.data_dir);
  const auto provenance = kernels::bench::provenance();
  fmt::print("{}\n{} on {}, batch {}, {} steps; device {}, backend {}, {}, threads {}\n\n", to_string(provenance),
             options.spec.model, options.dataset, options.spec.batch_size, options.spec.steps, device.id().to_string(),
             backend.name(), precision_name(options.spec.precision), threads);
  const bench::StepBenchParts parts{.device = device, .backend = backend, .dataset = *dataset};
  if (options.checkpointing.kind == nn::Checkpointing::Kind::none) {
    const bench::StepReport report = bench::bench_steps(options.spec, parts);
    print_report(report, options);
    write_bench_file(options.json_file, "step", provenance, results_of(report, options, backend));
    return;
  }
  bench::StepBenchSpec spec = options.spec;
  spec.checkpointing = options.checkpointing;
  const auto [kept, cut] = bench::bench_steps_in_turns(options.spec, spec, parts);
  print_report(kept, options);
  print_comparison(Comparison{kept, cut}, options);
  nlohmann::json results = results_of(kept, options, backend);
  results["checkpointed"] = results_of(Comparison{kept, cut});
  write_bench_file(options.json_file, "step", provenance, results);
}

}  // namespace

const Command kBenchStep = make_command<StepBenchOptions>("step", "duration of a training step and of its parts");

}  // namespace gradring::train
