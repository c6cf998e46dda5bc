// SPDX-License-Identifier: Apache-2.0
#include "train/config/options.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "data/datasets/open_dataset.h"
#include "kernels/runtime/nearest_name.h"
#include "nn/models/model.h"
#include "train/config/checkpointing_options.h"
#include "train/config/option_kinds.h"
#include "train/config/parse_value.h"
#include "train/faults/inject_option.h"

namespace gradring::train {
namespace {

constexpr std::string_view kOptimizers[] = {"adam", "adamw", "sgd"};
constexpr std::string_view kSchedules[] = {"constant", "step", "cosine", "one-cycle"};
constexpr std::string_view kSamplers[] = {"auto", "distributed", "sharded"};
constexpr std::string_view kMeans[] = {"samples", "ranks"};
constexpr std::string_view kBackends[] = {"auto", "reference", "cpu", "cuda"};
constexpr std::string_view kResident[] = {"auto", "on", "off"};
constexpr std::string_view kOnSaveError[] = {"stop", "continue"};
constexpr std::string_view kOnNan[] = {"auto", "skip", "halt", "rollback"};
constexpr std::string_view kPrecisions[] = {"auto", "fp32", "fp16", "bf16"};
constexpr std::string_view kComm[] = {"auto", "nccl", "shm", "tcp"};
constexpr std::string_view kAllReduce[] = {"auto", "ring", "direct", "nccl"};
constexpr std::string_view kWireTypes[] = {"fp32", "fp16", "bf16"};
constexpr std::string_view kProgress[] = {"auto", "bar", "plain", "none"};
constexpr std::int64_t kMostRanks = 4096;
constexpr std::int64_t kMostThreads = 1024;
constexpr std::int64_t kMostAccumulated = 1 << 20;
constexpr std::int64_t kMostKept = 1 << 30;

Option seed_option() {
  return {"seed", "N", "seed of the first weights and of the shuffles",
          [](TrainConfig& config, std::string_view given) { config.seed = parse_seed("seed", given); },
          [](const TrainConfig& config) {
            const std::string digits = std::to_string(config.seed);
            const bool fits = config.seed <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
            return fits ? digits : quoted(digits);  // TOML's integers end there
          }};
}

Option device_option() {
  return {"device", "auto|cpu|cuda[:i]",
          "where to compute; auto: a GPU if there is one; cuda: the GPU with the number of the local rank",
          [](TrainConfig& config, std::string_view given) {
            if (given != "auto") kernels::DeviceId::parse(given);
            config.device = std::string(given);
          },
          [](const TrainConfig& config) { return quoted(config.device); }};
}

Option timeout_option() {
  return {"timeout", "T", "how long ranks wait for each other (30s, 500ms, 2m)",
          [](TrainConfig& config, std::string_view given) { config.timeout = parse_duration("timeout", given); },
          [](const TrainConfig& config) { return quoted(show_duration(config.timeout)); }};
}

}  // namespace

const std::vector<Option>& train_options() {
  static const std::vector<Option> options = {
      word_option("dataset", "what to learn; digits is made on the spot", data::dataset_names(), &TrainConfig::dataset),
      text_option("data-dir", "D", "folder of the data set's files", &TrainConfig::data_dir),
      word_option("model", "what learns", nn::model_names(), &TrainConfig::model),
      integer_option("epochs", "passes over the training set; where only --steps is given, as many as it takes",
                     {.least = 0}, &TrainConfig::epochs),
      integer_option("steps", "stop after so many steps; 0: after the epochs", {.least = 0}, &TrainConfig::steps),
      integer_option("batch-size", "samples a forward and backward pass, per rank", {.least = 1},
                     &TrainConfig::batch_size),
      integer_option("accumulate",
                     "such batches that make one step: their gradients are summed before ranks exchange them",
                     {.least = 1, .most = kMostAccumulated}, &TrainConfig::accumulate),
      integer_option(
          "global-batch",
          "samples a step, of all ranks; each takes its share in passes of --batch-size; 0: --batch-size times "
          "--accumulate times the ranks",
          {.least = 0}, &TrainConfig::global_batch),
      word_option(
          "sampler",
          "who gets which samples: distributed, PyTorch's DistributedSampler, which may repeat some; sharded, each "
          "once an epoch, by whole shards; auto: sharded if --reproducible",
          kSamplers, &TrainConfig::sampler),
      integer_option("shard-size", "samples that go through a rank as one (sharded); 0: --batch-size", {.least = 0},
                     &TrainConfig::shard_size),
      word_option(
          "gradient-mean",
          "gradients are the mean over the samples of a step, or, as in PyTorch, over the means of the ranks, which "
          "differs where ranks have unequal shares",
          kMeans, &TrainConfig::gradient_mean),
      seed_option(),
      word_option("optimizer", "how gradients become new weights", kOptimizers,
                  in(&TrainConfig::optimizer, &OptimizerSpec::name)),
      number_option("lr", "learning rate, at its peak", &TrainConfig::learning_rate),
      number_option("momentum", "momentum (sgd)", in(&TrainConfig::optimizer, &OptimizerSpec::momentum)),
      number_option("dampening", "dampening of momentum (sgd)", in(&TrainConfig::optimizer, &OptimizerSpec::dampening)),
      flag_option("nesterov", "Nesterov's form of momentum (sgd)",
                  in(&TrainConfig::optimizer, &OptimizerSpec::nesterov)),
      number_option("weight-decay", "L2 (adam, sgd) or decoupled decay (adamw, where 0.01 is usual)",
                    in(&TrainConfig::optimizer, &OptimizerSpec::weight_decay)),
      flag_option("no-bias-decay", "weight decay leaves biases alone",
                  in(&TrainConfig::optimizer, &OptimizerSpec::no_bias_decay)),
      number_option("ema",
                    "decay of an average of the weights that is kept and evaluated beside them (0.999, say); 0: none",
                    in(&TrainConfig::optimizer, &OptimizerSpec::ema)),
      word_option("schedule", "how the learning rate changes with the steps that are applied", kSchedules,
                  in(&TrainConfig::schedule, &ScheduleSpec::name)),
      integer_option("warmup-steps", "steps in which it rises evenly to --lr before that", {.least = 0},
                     in(&TrainConfig::schedule, &ScheduleSpec::warmup_steps)),
      integer_option("schedule-step-size", "steps after which it falls (step)", {.least = 0},
                     in(&TrainConfig::schedule, &ScheduleSpec::step_size)),
      number_option("schedule-gamma", "by which it is multiplied then (step)",
                    in(&TrainConfig::schedule, &ScheduleSpec::gamma)),
      number_option("min-lr", "where it ends (cosine)", in(&TrainConfig::schedule, &ScheduleSpec::least)),
      number_option("clip-norm", "scale gradients down to this norm of all together; 0: never",
                    &TrainConfig::clip_norm),
      word_option("on-nan",
                  "where gradients are not finite: skip the step; halt, and say where it arose; rollback to the newest "
                  "checkpoint, if a smaller loss scale does not help; auto: skip in fp16, and look only there or with "
                  "--clip-norm",
                  kOnNan, &TrainConfig::on_nan),
      checkpoint_activations_option(),
      activation_budget_option(),
      word_option("precision",
                  "what layers compute in; the weights that are trained stay fp32; auto: fp16 on a GPU, else fp32",
                  kPrecisions, &TrainConfig::precision),
      number_option("loss-scale", "what the loss is multiplied by at first (fp16); halved on overflow",
                    &TrainConfig::loss_scale, std::numeric_limits<float>::min()),
      integer_option("loss-scale-interval", "steps without overflow after which the loss scale doubles (fp16)",
                     {.least = 1, .most = std::numeric_limits<std::int32_t>::max()}, &TrainConfig::loss_scale_interval),
      device_option(),
      word_option("backend", "who computes the layers", kBackends, &TrainConfig::backend),
      text_option("conv", "auto|NAME",
                  "who convolves: a variant of ours (gradring bench kernels lists them), onednn, cudnn",
                  &TrainConfig::conv),
      text_option("gemm", "auto|NAME", "who multiplies: a variant of ours, onednn, cublas", &TrainConfig::gemm),
      flag_option("autotune", "measure what cuDNN offers for each convolution, and remember the fastest (cuda)",
                  &TrainConfig::autotune),
      flag_option("reproducible",
                  "the same bits in every run at one CPU level, by any number of ranks that share one --global-batch",
                  &TrainConfig::reproducible),
      on_or_off_option("cuda-graph",
                       "launch a forward and backward pass on a GPU as one, with its all-reduces and its update",
                       &TrainConfig::cuda_graph),
      word_option("resident", "keep the training set on the device, as bytes; auto: on a GPU", kResident,
                  &TrainConfig::resident),
      integer_option("threads", "threads that compute, per rank; 0: OMP_NUM_THREADS, or the rank's share of the cores",
                     {.least = 0, .most = kMostThreads}, &TrainConfig::threads),
      flag_option("pin", "bind every rank to --threads cores of its own", &TrainConfig::pin),
      integer_option(
          "zero",
          "what ranks share out instead of each keeping it: 1 optimizer state, 2 gradients too (with --accumulate see "
          "--sync-every-pass), 3 weights too; 0: nothing",
          {.least = 0, .most = 3}, &TrainConfig::zero),
      flag_option("sync-every-pass",
                  "with --zero 2 or 3 and several passes a step (--accumulate), sum over the ranks in every pass: none "
                  "keeps whole gradients, but sums round otherwise than by --zero 0; without it a rank sums its passes "
                  "first, in memory as large as its fp32 weights",
                  &TrainConfig::sync_every_pass),
      word_option("comm", "what carries gradients between ranks; auto: nccl on GPUs, else shm, memory that ranks share",
                  kComm, &TrainConfig::comm),
      word_option("allreduce", "how they are summed; auto: direct where ranks share memory, else the ring", kAllReduce,
                  &TrainConfig::allreduce),
      word_option(
          "wire-dtype",
          "in what gradients travel between ranks; 16 bits are half the bytes, and round (fp16: with --precision fp16)",
          kWireTypes, &TrainConfig::wire_dtype),
      flag_option("allow-shared-gpu", "let several ranks use one GPU, for tests: slow", &TrainConfig::allow_shared_gpu),
      on_or_off_option("overlap", "sum gradients while backward goes on", &TrainConfig::overlap),
      megabytes_option("bucket-mb", "gradients all-reduced as one, in MiB", &BucketLimits::rest_bytes),
      megabytes_option("first-bucket-mb", "the same, for the first bucket of a step", &BucketLimits::first_bytes),
      timeout_option(),
      integer_option("check-replicas", "compare the ranks' weights every N steps; 0: never", {.least = 0},
                     &TrainConfig::check_replicas),
      integer_option("save-every-steps",
                     "save a checkpoint every N steps, beside those at the end of each epoch; 0: none", {.least = 0},
                     &TrainConfig::save_every_steps),
      integer_option("keep-last", "checkpoints of the highest steps that stay; 0: all", {.least = 0, .most = kMostKept},
                     &TrainConfig::keep_last),
      integer_option("keep-best", "checkpoints of the highest accuracy that stay beside them",
                     {.least = 0, .most = kMostKept}, &TrainConfig::keep_best),
      word_option("on-save-error",
                  "what to do if checkpoints cannot be saved; stop: end the run after the second in a row",
                  kOnSaveError, &TrainConfig::on_save_error),
      text_option("resume", "auto|auto-or-restart|none|PATH",
                  "checkpoint to resume from: PATH; auto: the newest valid one in --run-dir, if there is any; "
                  "auto-or-restart: the same, or step 0 if all are damaged",
                  &TrainConfig::resume),
      text_option("weights", "F",
                  "begin with the weights of a file (safetensors, or a PyTorch state_dict) or of a checkpoint",
                  &TrainConfig::weights),
      text_option("run-dir", "R",
                  "directory for the results, new or empty (to resume: that of the run); default "
                  "runs/<dataset>-<model>-<time>",
                  &TrainConfig::run_dir),
      word_option("progress", "how to show progress; auto: a bar on a terminal, else lines", kProgress,
                  &TrainConfig::progress),
      inject_option(),
      integer_option("nprocs", "ranks to spawn from this one process", {.least = 1, .most = kMostRanks},
                     &TrainConfig::nprocs),
  };
  return options;
}

const Option* find_option(std::string_view name) {
  const auto& options = train_options();
  const auto found = std::ranges::find(options, name, &Option::name);
  return found == options.end() ? nullptr : &*found;
}

std::string nearest_option(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Option& option : train_options()) names.push_back(option.name);
  return did_you_mean(name, names);
}

std::string variable_of(const Option& option) {
  std::string name = "GRADRING_" + option.name;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
  return name;
}

}  // namespace gradring::train
