// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "data/datasets/dataset.h"
#include "data/loader/loader.h"
#include "kernels/host/host_device.h"
#include "nn/backend/backend.h"
#include "train/core/trainer/replica.h"

namespace gradring::tests {

/// One rank of a data-parallel ConvNet, step by step: what the trainer drives, in the hands of a test, which chooses the
/// samples of every step.
class RankRig {
 public:
  struct Options {
    nn::ModelText model = "convnet";
    std::string backend = "cpu";
    train::OptimizerSpec optimizer;
    std::vector<float> learning_rates;  ///< of applied steps; none: 1e-3 for all
    double clip_norm = 0;
    double label_smoothing = 0;
    std::int64_t max_batch = 32;
    bool accumulates = false;  ///< a step of more samples is a window of batches
    std::uint64_t seed = 0;    ///< of this rank's own first weights; rank 0's count
    train::BucketLimits buckets;
    train::WireSpec wire;
    int zero = 0;
    bool sync_every_pass = false;  ///< and not once a window (ZeRO 2 and 3)
    bool sync_batch_norm = false;
    bool overlap = true;
    nn::Checkpointing checkpointing;
    bool recorded = false;
    kernels::DType precision = kernels::DType::f32;
    train::LossScaling loss_scaling;
    kernels::Device* device = nullptr;  ///< null: a CPU device of its own
    int devices = 1;                    ///< that split each batch (--data-parallel)
    /// What a test puts around the backend.
    std::function<std::unique_ptr<nn::Backend>(std::unique_ptr<nn::Backend>)> decorate;
  };
  RankRig(comm::ProcessGroup& group, const data::Dataset& dataset, const Options& options);
  ~RankRig();

  /// One step on the samples `indices`, of which all ranks together have `global_samples`, in batches of max_batch, or one
  /// without samples. The global mean loss stands in the result.
  train::StepResult step(const std::vector<std::int64_t>& indices, std::int64_t global_samples);

  /// All weights (those that are trained), or gradients (times the loss scale), in state_dict order and PyTorch's
  /// layout. With ZeRO, of all ranks at once.
  std::vector<std::vector<float>> weights() const;
  std::vector<std::vector<float>> gradients() const;
  const std::vector<nn::Parameter>& parameters() const;
  train::Replica& replica();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Runs `rank(group)` on `world` threads, each with its own process group of one in-process world. What a rank throws is
/// rethrown here, the lowest rank's first.
void run_ranks(int world, const std::function<void(comm::ProcessGroup&)>& rank);

/// The 320 made-up images of the golden files.
std::unique_ptr<data::Dataset> golden_images();

}  // namespace gradring::tests
