// SPDX-License-Identifier: Apache-2.0
#include "train/bench/commands/step_options.h"

#include "data/datasets/open_dataset.h"
#include "nn/models/model.h"
#include "train/bench/sweep.h"
#include "train/core/config/train_config.h"
#include "train/options/usage_error.h"

namespace gradring::train {

CommandLine command_line(StepBenchOptions& options) {
  return {
      .command = "gradring bench step",
      .purpose = "duration of a training step, and of its parts",
      .usage = {"gradring bench step [OPTIONS]", "gradring launch --nproc-per-node N bench step [OPTIONS]"},
      .options = with_common_options(
          dataset_options(
              options.dataset, options.data_dir,
              {choice_option("model", nn::model_names(), "model architecture (default convnet)", options.spec.model),
               value_option("batch-size", "N",
                            "samples per rank and step (default 256), or a sweep: 16:512:*2, 16:64:+16",
                            bench::parse_values, options.batch_sizes),
               text_option("device", "auto|cpu|cuda[:I]", "device (default cpu)", options.device),
               simulate_gpu_option(options.simulated),
               simulate_seed_option(options.simulated),
               counters_option(options.simulated),
               {.name = "counters-exclude",
                .value = "NAME",
                .help =
                    "node of the step's graph that --counters leaves out of the total, if it cannot be counted; may "
                    "be repeated",
                .read = [&](std::string_view text) { options.excluded.emplace_back(text); }},
               choice_option("backend", "implementation of the layers (default auto)", options.backend),
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
  if (options.simulated.counters && options.checkpointing.kind != nn::Checkpointing::Kind::none)
    throw UsageError("--counters counts one program, but --checkpoint-activations compares two: leave one out");
}

/// A simulated GPU has no times to repeat: its first step runs eagerly, the second is captured.
void set_default_steps(StepBenchOptions& options) {
  const bool simulates = is_simulated(options.simulated.card);
  if (simulates) options.spec.steps = 1, options.spec.warmup = 2;
  if (options.steps > 0) options.spec.steps = options.steps;
  if (options.warmup >= 0) options.spec.warmup = options.warmup;
}

void list_steps(const StepBenchOptions& options) {
  const auto strings = [](const auto& words) { return std::vector<std::string>(words.begin(), words.end()); };
  print_list("--model:", strings(nn::model_names()));
  print_list("--dataset:", strings(data::dataset_names()));
  const std::string missing = missing_gpu();
  const std::string gpu = missing.empty() ? "" : ", not available here: " + missing;
  print_list("--device, --backend:",
             std::vector<std::string>{"cpu   cpu (oneDNN and our kernels), reference", "cuda  cuda" + gpu});
  print_list("--precision:", std::vector<std::string>{"fp32", "fp16", "bf16"});
  print_list("--comm, for --nprocs 2 or more:", std::vector<std::string>{"shm   CPU", "tcp   CPU", "nccl  GPU" + gpu});
  std::vector<std::string> sizes;
  for (const std::int64_t size : options.batch_sizes) sizes.push_back(std::to_string(size));
  print_list("batch sizes:", sizes);
}

}  // namespace gradring::train
