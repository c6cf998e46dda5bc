// SPDX-License-Identifier: Apache-2.0
#include "train/config/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "data/datasets/open_dataset.h"
#include "kernels/runtime/nearest_name.h"
#include "nn/models/model.h"
#include "train/options/parse_value.h"

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
constexpr std::int64_t kMostAccumulated = 1 << 20;
constexpr std::int64_t kMostKept = 1 << 30;

using Options = std::vector<TrainOption>;

// Builders of rows. A `place` is what std::invoke turns a config into a reference with: a pointer to a member, or in().

template <class Group, class Value>
auto in(Group TrainConfig::*group, Value Group::*field) {
  return [group, field](auto& config) -> auto& { return config.*group.*field; };
}

/// `read` takes the option's name and the text and returns the value; `show` is its inverse, a TOML literal.
template <class Place, class Read, class Show>
TrainOption option(const std::string& name, std::string value, std::string help, Place place, Read read, Show show) {
  return {.name = name,
          .value = std::move(value),
          .help = std::move(help),
          .read = [=](TrainConfig& config, std::string_view given) { std::invoke(place, config) = read(name, given); },
          .show = [=](const TrainConfig& config) { return show(std::invoke(place, config)); }};
}

TrainOption text_option(const std::string& name, std::string value, std::string help, std::string TrainConfig::*field) {
  const auto read = [](std::string_view, std::string_view given) { return std::string(given); };
  return option(name, std::move(value), std::move(help), field, read, quoted);
}

template <class Place>
TrainOption word_option(const std::string& name, std::string help, std::span<const std::string_view> words,
                        Place place) {
  const auto read = [words](std::string_view of, std::string_view given) { return parse_word(of, given, words); };
  return option(name, fmt::format("{}", fmt::join(words, "|")), std::move(help), place, read, quoted);
}

TrainOption on_or_off_option(const std::string& name, std::string help, bool TrainConfig::*field) {
  static constexpr std::string_view kOnOff[] = {"on", "off"};
  const auto read = [](std::string_view of, std::string_view given) { return parse_word(of, given, kOnOff) == "on"; };
  return option(name, "on|off", std::move(help), field, read, [](bool on) { return quoted(on ? "on" : "off"); });
}

template <class Place>
TrainOption integer_option(const std::string& name, std::string help, IntegerRange range, Place place) {
  const auto read = [range](std::string_view of, std::string_view given) { return parse_integer(of, given, range); };
  return option(name, "N", std::move(help), place, read, [](std::int64_t value) { return std::to_string(value); });
}

/// A number from `least` up.
template <class Place>
TrainOption number_option(const std::string& name, std::string help, Place place, double least = 0) {
  const auto read = [least](std::string_view of, std::string_view given) { return parse_number(of, given, least); };
  return option(name, "F", std::move(help), place, read, [](auto value) { return fmt::format("{}", value); });
}

template <class Place>
TrainOption flag_option(const std::string& name, std::string help, Place place) {
  return option(name, "", std::move(help), place, parse_flag,
                [](bool on) { return std::string(on ? "true" : "false"); });
}

TrainOption megabytes_option(const std::string& name, std::string help, std::size_t BucketLimits::*field) {
  return option(name, "F", std::move(help), in(&TrainConfig::buckets, field), parse_megabytes, show_megabytes);
}

std::string show_seed(std::uint64_t seed) {
  const std::string digits = std::to_string(seed);
  const bool fits = seed <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return fits ? digits : quoted(digits);  // TOML's integers end there
}

/// Reading leaves the budget as it is.
TrainOption checkpoint_activations_option() {
  const std::string name = "checkpoint-activations";
  return {.name = name,
          .value = std::string(kCheckpointingValue),
          .help =
              "activation checkpointing: number of segments whose activations are recomputed in backward; auto: as "
              "many as --activation-budget-mb requires",
          .read = [name](TrainConfig& config,
                         std::string_view given) { read_checkpointing(name, given, config.checkpointing); },
          .show = [](const TrainConfig& config) { return quoted(show_checkpointing(config.checkpointing)); }};
}

TrainOption inject_option() {
  TrainOption inject = option(
      "inject", "KIND:rank=R,step=N",
      "fault before step N, for tests: kill, stop, delay (ms=M), exit (code=C) or nan; rank=any and "
      "step=20..40 are drawn (seed=S); only in the first attempt, unless attempt=K or attempt=every; may be "
      "repeated",
      &TrainConfig::faults, [](std::string_view, std::string_view given) { return parse_faults(given); },
      [](const std::vector<Fault>& faults) { return quoted(show_faults(faults)); });
  inject.separator = kBetweenFaults;
  return inject;
}

Options data_options() {
  return {
      word_option("dataset", "training and test set; digits is generated in memory", data::dataset_names(),
                  &TrainConfig::dataset),
      text_option("data-dir", "DIR", "folder with the files of the dataset", &TrainConfig::data_dir),
      word_option(
          "sampler",
          "assignment of samples to ranks; distributed: as PyTorch's DistributedSampler, which may repeat some; "
          "sharded: each once an epoch, in whole shards; auto: sharded with --reproducible, else distributed",
          kSamplers, &TrainConfig::sampler),
      integer_option("shard-size", "samples per shard with --sampler sharded; 0: --batch-size", {.least = 0},
                     &TrainConfig::shard_size),
  };
}

Options model_options() {
  return {
      word_option("model", "model architecture", nn::model_names(), &TrainConfig::model),
      text_option("weights", "PATH", "initial weights: a checkpoint, a .safetensors file or a PyTorch state_dict",
                  &TrainConfig::weights),
      checkpoint_activations_option(),
      option("activation-budget-mb", "F",
             "memory limit for activations in MiB with --checkpoint-activations auto; 0: as little as possible",
             in(&TrainConfig::checkpointing, &nn::Checkpointing::budget_bytes), parse_budget, show_megabytes),
  };
}

Options batch_options() {
  return {
      integer_option("epochs", "passes over the training set; 0: until --steps, also if only --steps is given",
                     {.least = 0}, &TrainConfig::epochs),
      integer_option("steps", "optimizer steps after which training ends; 0: after --epochs", {.least = 0},
                     &TrainConfig::steps),
      integer_option("batch-size", "samples per rank and micro-batch", {.least = 1}, &TrainConfig::batch_size),
      integer_option("accumulate", "micro-batches per step, whose gradients are summed before the all-reduce",
                     {.least = 1, .most = kMostAccumulated}, &TrainConfig::accumulate),
      integer_option("global-batch",
                     "samples per step over all ranks, in micro-batches of --batch-size; 0: --batch-size times "
                     "--accumulate times ranks",
                     {.least = 0}, &TrainConfig::global_batch),
      word_option("gradient-mean",
                  "mean of gradients over the samples of a step, or over the ranks' means as in PyTorch, which differs "
                  "where ranks have different numbers of samples",
                  kMeans, &TrainConfig::gradient_mean),
      number_option("clip-norm",
                    "largest global L2 norm of the gradients, to which larger ones are scaled; 0: no limit",
                    &TrainConfig::clip_norm),
      word_option("on-nan",
                  "response to gradients that are not finite; skip: no update in this step; halt: error that names the "
                  "origin; rollback: return to the newest checkpoint if a smaller loss scale does not help; auto: "
                  "skip in fp16, else halt",
                  kOnNan, &TrainConfig::on_nan),
      option("seed", "N", "seed of the initial weights and of the shuffles", &TrainConfig::seed, parse_seed, show_seed),
  };
}

Options optimizer_options() {
  return {
      word_option("optimizer", "optimizer", kOptimizers, in(&TrainConfig::optimizer, &OptimizerSpec::name)),
      number_option("lr", "peak learning rate", &TrainConfig::learning_rate),
      number_option("momentum", "momentum (sgd)", in(&TrainConfig::optimizer, &OptimizerSpec::momentum)),
      number_option("dampening", "dampening of the momentum (sgd)",
                    in(&TrainConfig::optimizer, &OptimizerSpec::dampening)),
      flag_option("nesterov", "Nesterov momentum (sgd)", in(&TrainConfig::optimizer, &OptimizerSpec::nesterov)),
      number_option("weight-decay", "weight decay: L2 penalty (adam, sgd) or decoupled (adamw, where 0.01 is usual)",
                    in(&TrainConfig::optimizer, &OptimizerSpec::weight_decay)),
      flag_option("no-bias-decay", "exclusion of biases from weight decay",
                  in(&TrainConfig::optimizer, &OptimizerSpec::no_bias_decay)),
      number_option(
          "ema",
          "decay of an exponential moving average of the weights, evaluated beside them, such as 0.999; 0: no average",
          in(&TrainConfig::optimizer, &OptimizerSpec::ema)),
      word_option("schedule", "learning rate schedule over the steps", kSchedules,
                  in(&TrainConfig::schedule, &ScheduleSpec::name)),
      integer_option("warmup-steps", "steps of linear warm-up to --lr", {.least = 0},
                     in(&TrainConfig::schedule, &ScheduleSpec::warmup_steps)),
      integer_option("schedule-step-size", "steps between decays of the learning rate (step)", {.least = 0},
                     in(&TrainConfig::schedule, &ScheduleSpec::step_size)),
      number_option("schedule-gamma", "factor of each decay (step)", in(&TrainConfig::schedule, &ScheduleSpec::gamma)),
      number_option("min-lr", "final learning rate (cosine)", in(&TrainConfig::schedule, &ScheduleSpec::least)),
  };
}

Options precision_options() {
  return {
      word_option("precision", "compute type of the layers; master weights stay fp32; auto: fp16 on a GPU, else fp32",
                  kPrecisions, &TrainConfig::precision),
      number_option("loss-scale", "initial loss scale (fp16), halved on overflow", &TrainConfig::loss_scale,
                    std::numeric_limits<float>::min()),
      integer_option("loss-scale-interval", "steps without overflow before the loss scale doubles (fp16)", {.least = 1},
                     &TrainConfig::loss_scale_interval),
      flag_option(
          "reproducible",
          "bitwise equal results in every run at one CPU level, for any number of ranks with the same --global-batch",
          &TrainConfig::reproducible),
  };
}

Options parallelism_options() {
  TrainOption nprocs = integer_option("nprocs", "ranks to start from this process", {.least = 1, .most = kMostRanks},
                                      &TrainConfig::nprocs);
  nprocs.aliases = {"nproc-per-node", "nproc", "ranks"};
  return {
      std::move(nprocs),
      integer_option("zero",
                     "ZeRO stage, what ranks shard instead of replicating: 0 nothing, 1 optimizer state, 2 also "
                     "gradients (with --accumulate see --sync-every-pass), 3 also weights",
                     {.least = 0, .most = 3}, &TrainConfig::zero),
      flag_option("sync-every-pass",
                  "reduce-scatter after every micro-batch with --zero 2 or 3: no rank holds all gradients, but sums "
                  "round differently from --zero 0; default: one reduce-scatter a step, and a gradient buffer as large "
                  "as the fp32 weights",
                  &TrainConfig::sync_every_pass),
      integer_option("check-replicas", "steps between comparisons of the ranks' weights; 0: no comparison",
                     {.least = 0}, &TrainConfig::check_replicas),
      inject_option(),
  };
}

Options communication_options() {
  return {
      word_option("comm", "transport between ranks; auto: nccl on GPUs, else shm (shared memory)", kComm,
                  &TrainConfig::comm),
      word_option("allreduce", "all-reduce algorithm; auto: direct in shared memory, else ring", kAllReduce,
                  &TrainConfig::allreduce),
      word_option("wire-dtype",
                  "type of gradients in transit between ranks; 16 bits halve the bytes and round (fp16 requires "
                  "--precision fp16)",
                  kWireTypes, &TrainConfig::wire_dtype),
      on_or_off_option("overlap", "overlap of the all-reduce with backward", &TrainConfig::overlap),
      megabytes_option("bucket-mb", "size of a gradient bucket in MiB", &BucketLimits::rest_bytes),
      megabytes_option("first-bucket-mb", "size of the first gradient bucket of a step in MiB",
                       &BucketLimits::first_bytes),
      option("timeout", "TIME", "longest wait of a rank for another: 500ms, 30s, 2m", &TrainConfig::timeout,
             parse_duration, [](std::chrono::milliseconds time) { return quoted(show_duration(time)); }),
  };
}

Options checkpoint_options() {
  return {
      integer_option("save-every-steps", "steps between checkpoints, besides those after each epoch; 0: none",
                     {.least = 0}, &TrainConfig::save_every_steps),
      integer_option("keep-last", "number of newest checkpoints to keep; 0: all", {.least = 0, .most = kMostKept},
                     &TrainConfig::keep_last),
      integer_option("keep-best", "number of checkpoints with the highest accuracy to keep besides",
                     {.least = 0, .most = kMostKept}, &TrainConfig::keep_best),
      word_option("on-save-error", "response to checkpoints that cannot be saved; stop: end after two in a row",
                  kOnSaveError, &TrainConfig::on_save_error),
      text_option("resume", "auto|auto-or-restart|none|PATH",
                  "checkpoint to resume from; auto: the newest valid one in --run-dir, if there is one; "
                  "auto-or-restart: the same, or step 0 if all are corrupt",
                  &TrainConfig::resume),
  };
}

Options output_options() {
  return {
      text_option("run-dir", "DIR",
                  "directory for results, new or empty, or that of the run to resume (default "
                  "runs/<name>-<time>, without --name runs/<dataset>-<model>-<time>)",
                  &TrainConfig::run_dir),
      text_option("name", "NAME", "name of the run, for people", &TrainConfig::name),
      text_option("tags", "TAG,...", "labels of the run, for people", &TrainConfig::tags),
      integer_option("eval-every", "steps between evaluations, besides those after each epoch; 0: none", {.least = 0},
                     &TrainConfig::eval_every),
      integer_option("log-every", "steps between collections of every rank's times and memory", {.least = 1},
                     &TrainConfig::log_every),
      word_option("progress", "progress display; auto: bar on a terminal, else plain lines", kProgress,
                  &TrainConfig::progress),
  };
}

Options device_options() {
  return {
      option(
          "device", "auto|cpu|cuda[:I]",
          "compute device; auto: a GPU if there is one; cuda: the GPU whose index is the local rank",
          &TrainConfig::device,
          [](std::string_view, std::string_view given) {
            if (given != "auto") kernels::DeviceId::parse(given);
            return std::string(given);
          },
          quoted),
      word_option("backend", "implementation of the layers", kBackends, &TrainConfig::backend),
      text_option("conv", "auto|NAME",
                  "convolution kernel: a variant from `gradring bench kernels --op conv2d`, onednn or cudnn",
                  &TrainConfig::conv),
      text_option("gemm", "auto|NAME",
                  "matrix multiplication kernel: a variant from `gradring bench kernels --op gemm`, onednn or cublas",
                  &TrainConfig::gemm),
      flag_option("autotune", "measurement of cuDNN's algorithms for each convolution; the fastest is cached",
                  &TrainConfig::autotune),
      on_or_off_option("cuda-graph", "CUDA graph of forward, backward, all-reduce and update",
                       &TrainConfig::cuda_graph),
      word_option("resident", "training set in device memory, as bytes; auto: on a GPU", kResident,
                  &TrainConfig::resident),
      integer_option("threads", "compute threads per rank; 0: OMP_NUM_THREADS, or the rank's share of the cores",
                     {.least = 0, .most = kMostThreads}, &TrainConfig::threads),
      flag_option("pin", "CPU affinity: --threads cores of its own for every rank", &TrainConfig::pin),
      flag_option("allow-shared-gpu", "permission for several ranks to use one GPU, for tests; slow",
                  &TrainConfig::allow_shared_gpu),
  };
}

Options all_options() {
  Options all;
  const auto add = [&all](const char* group, Options options) {
    for (TrainOption& option : options) option.group = group;
    std::ranges::move(options, std::back_inserter(all));
  };
  add("Data", data_options());
  add("Model", model_options());
  add("Optimization", batch_options());
  add("Optimization", optimizer_options());
  add("Precision", precision_options());
  add("Parallelism", parallelism_options());
  add("Communication", communication_options());
  add("Checkpoints", checkpoint_options());
  add("Output", output_options());
  add("Devices", device_options());
  return all;
}

}  // namespace

const std::vector<TrainOption>& train_options() {
  static const Options options = all_options();
  return options;
}

const TrainOption* find_option(std::string_view name) {
  const auto& options = train_options();
  const auto found = std::ranges::find(options, name, &TrainOption::name);
  return found == options.end() ? nullptr : &*found;
}

std::string nearest_option(std::string_view name) {
  std::vector<std::string_view> names;
  for (const TrainOption& option : train_options()) names.push_back(option.name);
  return did_you_mean(name, names);
}

std::string variable_of(const TrainOption& option) {
  std::string name = "GRADRING_" + option.name;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
  return name;
}

std::string quoted(const std::string& text) {
  std::string literal = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f) {
      literal += fmt::format("\\u{:04x}", code);
      continue;
    }
    if (c == '"' || c == '\\') literal += '\\';
    literal += c;
  }
  return literal + "\"";
}

}  // namespace gradring::train
