// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/runtime/device.h"
#include "nn/program/checkpointing.h"
#include "train/faults/fault.h"
#include "train/optim/optimizer.h"
#include "train/parallel/buckets.h"
#include "train/schedule/schedule.h"

namespace gradring::train {

/// Everything that decides a training run. The defaults are the command line's. config/options.cpp says how each field is
/// spelled, read and written.
struct TrainConfig {
  std::string dataset = "digits";
  std::string data_dir;
  std::string model = "convnet";
  std::int64_t epochs = 2;                ///< 0: the steps decide
  std::int64_t steps = 0;                 ///< stop after so many; 0: the epochs decide
  std::int64_t batch_size = 64;           ///< per rank, in one forward and backward pass
  std::int64_t accumulate = 1;            ///< such batches that make one step
  std::int64_t global_batch = 0;          ///< samples of a step, of all ranks; 0: what the two above make
  std::string sampler = "auto";           ///< auto, distributed, sharded
  std::int64_t shard_size = 0;            ///< samples that a rank takes as one (sharded); 0: batch_size
  std::string gradient_mean = "samples";  ///< over what gradients are a mean: samples, ranks
  std::uint64_t seed = 0;                 ///< of the first weights and of the shuffles

  OptimizerSpec optimizer;
  double learning_rate = 1e-3;  ///< at its peak
  ScheduleSpec schedule;
  double clip_norm = 0;         ///< of all gradients together; 0: they are not clipped
  std::string on_nan = "auto";  ///< what becomes of gradients that are not finite: auto, skip, halt, rollback

  nn::Checkpointing checkpointing;  ///< which activations are computed twice instead of kept

  std::string precision = "auto";           ///< auto, fp32, fp16, bf16
  double loss_scale = 65536;                ///< of the first step in fp16
  std::int64_t loss_scale_interval = 2000;  ///< steps without overflow after which it doubles

  std::string device = "auto";      ///< auto, cpu, cuda, cuda:<index>
  std::string backend = "auto";     ///< auto, reference, cpu, cuda
  std::string conv = "auto";        ///< who computes convolutions: auto, or a name that the backend has
  std::string gemm = "auto";        ///< the same for products
  bool autotune = false;            ///< measure what cuDNN offers, instead of trusting its order
  bool reproducible = false;        ///< the same bits in every run
  bool cuda_graph = true;           ///< a step on a GPU is launched as one
  std::string resident = "auto";    ///< auto, on, off: whether the training set lies on the device
  std::int64_t threads = 0;         ///< that compute, per rank; 0: the rank's share of the cores, or OMP_NUM_THREADS
  bool pin = false;                 ///< every rank keeps to cores of its own
  std::int64_t zero = 0;            ///< what ranks share out instead of each keeping it: see ReplicaSpec
  bool sync_every_pass = false;     ///< ranks sum gradients in each pass of a step, not only in its last (ZeRO 2, 3)
  bool overlap = true;              ///< gradients are summed while backward goes on
  std::string comm = "auto";        ///< auto, nccl, shm, tcp
  std::string allreduce = "auto";   ///< auto, ring, direct, nccl
  std::string wire_dtype = "fp32";  ///< in which gradients travel between ranks: fp32, fp16, bf16
  bool allow_shared_gpu = false;    ///< several ranks on one GPU, for tests

  BucketLimits buckets;
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  std::int64_t check_replicas = 0;  ///< compare the ranks' weights every so many steps; 0: never

  std::int64_t save_every_steps = 0;  ///< checkpoints beside those at the end of each epoch; 0: none
  std::int64_t keep_last = 3;         ///< checkpoints of the highest steps that stay; 0: all
  std::int64_t keep_best = 1;         ///< beside them, those of the highest accuracy
  std::string on_save_error = "stop";  ///< what becomes of a run whose checkpoints cannot be saved: stop, continue
  std::string resume = "none";        ///< none, auto, auto-or-restart, or the path of a checkpoint
  std::string weights;                ///< a file of weights to begin with; empty: they are drawn

  std::string run_dir;  ///< empty: runs/<dataset>-<model>-<time>
  std::string progress = "auto";
  std::vector<Fault> faults;  ///< that are to happen
  std::int64_t nprocs = 1;    ///< ranks to spawn from this one process
};

/// Whether --resume looks for checkpoints in --run-dir.
inline bool resumes_automatically(const TrainConfig& config) {
  return config.resume == "auto" || config.resume == "auto-or-restart";
}

/// What --threads means: sums within a layer may depend on how many threads share them out, so reproducible runs do not take
/// what the machine happens to have.
inline std::int64_t threads_option(const TrainConfig& config) {
  return config.reproducible && config.threads == 0 ? 1 : config.threads;
}

/// What one option alone cannot see: counts that fit each other, options that the chosen optimizer does not have.
///
/// Errors    UsageError; says which options and what to do.
void validate(const TrainConfig& config);

}  // namespace gradring::train
