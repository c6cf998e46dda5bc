// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstddef>

#include "kernels/runtime/device.h"
#include "train/core/config/option_rows.h"
#include "train/core/config/simulated_gpu_option.h"
#include "train/core/faults/fault.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/progress.h"

namespace gradring::train::option_rows {
namespace {

constexpr std::string_view kLogs[] = {kTensorBoard};
constexpr std::int64_t kMostRanks = 4096;
constexpr std::int64_t kMostDevices = 64;
constexpr std::int64_t kMostKept = 1 << 30;

TrainOption megabytes_option(const std::string& name, std::string help, std::size_t BucketLimits::*field) {
  return option(name, "F", std::move(help), in(&TrainConfig::buckets, field), parse_megabytes, show_megabytes);
}

StepRange parse_step_range(std::string_view name, std::string_view given) {
  const std::size_t colon = given.find(':');
  if (colon == std::string_view::npos)
    throw UsageError(fmt::format("--{} is '{}', but must be two step numbers, such as 10:20", name, given));
  const StepRange range{.first = parse_integer(name, given.substr(0, colon), {.least = 1}),
                        .last = parse_integer(name, given.substr(colon + 1), {.least = 1})};
  if (range.first <= range.last) return range;
  throw UsageError(fmt::format("--{} is '{}', but the first step must not be above the last", name, given));
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

TrainOption log_option() {
  TrainOption log = option(
      "log", "NAME,...",
      "metrics in additional formats, besides metrics.jsonl; tensorboard: event files in tensorboard/ of the run "
      "directory",
      &TrainConfig::log,
      [](std::string_view name, std::string_view given) {
        for (const std::string& each : comma_separated(std::string(given))) parse_word(name, each, kLogs);
        return std::string(given);
      },
      quoted);
  log.separator = ',';
  return log;
}

}  // namespace

Options parallelism_options() {
  return {
      integer_option("nprocs", "ranks to start from this process", {.least = 1, .most = kMostRanks},
                     &TrainConfig::nprocs),
      integer_option(
          "data-parallel",
          "devices of one process, as PyTorch's DataParallel: every micro-batch of --batch-size is split over "
          "them, and the first updates the weights; cuda:0 and those after it, or on a CPU threads",
          {.least = 1, .most = kMostDevices}, &TrainConfig::data_parallel),
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
      choice_option<TransportKind>("comm", "transport between ranks; auto: nccl on GPUs, else shm (shared memory)",
                                   &TrainConfig::comm),
      choice_option<AllReduce>("allreduce", "all-reduce algorithm; auto: direct in shared memory, else ring",
                               &TrainConfig::allreduce),
      choice_option<Precision>(
          "wire-dtype",
          "type of gradients in transit between ranks; 16 bits halve the bytes and round (fp16 requires "
          "--precision fp16)",
          &TrainConfig::wire_dtype, std::span(kWords<Precision>).subspan(1)),
      flag_option(
          "sync-batchnorm",
          "batch normalization by the micro-batch of all ranks, as of one rank, to rounding (with --reproducible "
          "to the bit); without it, by each rank's own, with the running statistics of rank 0",
          &TrainConfig::sync_batchnorm),
      on_or_off_option("overlap", "overlap of the all-reduce with backward", &TrainConfig::overlap),
      megabytes_option("bucket-mb", "size of a gradient bucket in MiB", &BucketLimits::rest_bytes),
      megabytes_option("first-bucket-mb", "size of the first gradient bucket of a step in MiB",
                       &BucketLimits::first_bytes),
      option("timeout", "TIME",
             "longest wait of a rank for another: 500ms, 30s, 2m; on simulated GPUs 60m unless given",
             &TrainConfig::timeout, parse_duration,
             [](std::chrono::milliseconds time) { return quoted(show_duration(time)); }),
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
      choice_option<OnSaveError>("on-save-error",
                                 "response to checkpoints that cannot be saved; stop: end after two in a row",
                                 &TrainConfig::on_save_error),
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
      resumed(OnResume::run,
              text_option("name", "NAME", "name of the run, shown in lists and reports", &TrainConfig::name)),
      resumed(OnResume::run,
              text_option("tags", "TAG,...", "labels of the run, for lists and for gradring runs ls --tag",
                          &TrainConfig::tags)),
      integer_option("eval-every", "steps between evaluations, besides those after each epoch; 0: none", {.least = 0},
                     &TrainConfig::eval_every),
      choice_option<Tta>("tta",
                         "test-time augmentation in one more evaluation at the end; flip: mean of the logits of an "
                         "image and its mirror image; airbench: also of those shifted by a pixel",
                         &TrainConfig::tta),
      integer_option("log-every", "steps between collections of every rank's times and memory", {.least = 1},
                     &TrainConfig::log_every),
      text_option("trace", "FILE", "trace of all ranks for ui.perfetto.dev (JSON; compressed if FILE ends in .gz)",
                  &TrainConfig::trace),
      option("trace-steps", "A:B", "steps that --trace records, from A to B, counted from 1", &TrainConfig::trace_steps,
             parse_step_range,
             [](const StepRange& range) { return quoted(fmt::format("{}:{}", range.first, range.last)); }),
      log_option(),
      choice_option<ProgressStyle>("progress", "progress display; auto: bar on a terminal, else plain lines",
                                   &TrainConfig::progress),
  };
}

Options device_options() {
  return {
      changing(Changes::rounding,
               option(
                   "device", "auto|cpu|cuda[:I]",
                   "compute device; auto: a GPU if there is one; cuda: the GPU whose index is the local rank",
                   &TrainConfig::device,
                   [](std::string_view, std::string_view given) {
                     if (given != "auto") kernels::DeviceId::parse(given);
                     return std::string(given);
                   },
                   quoted)),
      changing(
          Changes::rounding,
          option(
              "simulate-gpu", simulated_gpu_values(),
              "card that is simulated instead of using a GPU, with --device cuda: executes the PTX of our kernels on "
              "the CPU, checks every access, and is slow; none: real GPUs; FILE.card: a card that a file describes",
              &TrainConfig::simulate_gpu, parse_simulated_gpu, quoted)),
      seed_option("simulate-seed", "seed of the order in which simulated GPUs do what CUDA leaves unordered",
                  &TrainConfig::simulate_seed),
      changing(Changes::rounding,
               choice_option<BackendKind>("backend", "implementation of the layers", &TrainConfig::backend)),
      changing(Changes::rounding,
               text_option("conv", "auto|NAME",
                           "convolution kernel: a variant from `gradring bench kernels --op conv2d`, onednn or cudnn",
                           &TrainConfig::conv)),
      changing(Changes::rounding,
               text_option(
                   "gemm", "auto|NAME",
                   "matrix multiplication kernel: a variant from `gradring bench kernels --op gemm`, onednn or cublas",
                   &TrainConfig::gemm)),
      changing(Changes::rounding, flag_option("autotune",
                                              "measurement of kernels and libraries for each layer on a GPU (on a "
                                              "simulated GPU: their counted bounds); the fastest is cached and kept by "
                                              "--resume",
                                              &TrainConfig::autotune)),
      on_or_off_option("cuda-graph", "CUDA graph of forward, backward, all-reduce and update",
                       &TrainConfig::cuda_graph),
      choice_option<Resident>("resident",
                              "training set and what is evaluated in device memory, as bytes; auto: on a GPU",
                              &TrainConfig::resident),
      changing(Changes::rounding,
               integer_option(
                   "threads",
                   "compute threads per rank, or device of --data-parallel; 0: OMP_NUM_THREADS, or its share of the "
                   "usable processors",
                   {.least = 0, .most = kMostThreads}, &TrainConfig::threads)),
      integer_option(
          "loader-threads",
          "threads per rank that read, augment and normalize batches in host memory; 0: 1 on a CPU, beside a "
          "GPU the rank's share of the usable processors, at most 4",
          {.least = 0, .most = kMostLoaderThreads}, &TrainConfig::loader_threads),
      flag_option("pin", "CPU affinity: --threads cores of its own for every rank", &TrainConfig::pin),
      flag_option("allow-shared-gpu", "permission for several ranks to use one GPU, for tests; slow",
                  &TrainConfig::allow_shared_gpu),
  };
}

}  // namespace gradring::train::option_rows
