// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "data/datasets/dataset.h"
#include "data/loader/normalize.h"
#include "data/loader/sampler.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/device.h"
#include "nn/program/program.h"
#include "train/core/trainer/replica.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {

/// Running statistics of batch normalization that belong to a replica's averaged weights (--ema). Those of the training
/// belong to the weights of its last steps.
///
/// Algorithm  for each buffer, the mean over batches of the training set of what a forward pass in training mode finds
///            in each batch, with the averaged weights and dropout. Samples are shuffled, and not augmented. All batches
///            are of equal size, and each rank has equally many; the rest of the samples is left out. With micro_batch
///            a batch is one of all ranks, which normalize it together (SyncBatchNorm).
/// Numerics   means in f64, equal on every rank; with micro_batch the bits do not depend on the number of ranks.
/// Cost       a forward pass over the training set; the host copies all buffers after each batch.
/// Threads    the trainer's. Parts and replica must outlive it.
/// Source     torch.optim.swa_utils.update_bn
/// Example    tests/train/core/trainer/averaged_statistics_test.cpp
class AveragedStatistics {
 public:
  struct Parts {
    const data::Dataset& train_set;
    const kernels::KernelSet& kernels;
    comm::ProcessGroup& group;
    data::NormalizeSpec normalize = {};
    std::int64_t micro_batch = 0;  ///< samples of a batch over all ranks, in whole shards (--reproducible); 0: any
    std::int64_t shard = 0;        ///< samples of a shard, with micro_batch only
  };
  AveragedStatistics(const Parts& parts, Replica& replica) : parts_(parts), replica_(replica) {}

  /// Computes them for these weights. Leaves the model's own buffers as they are. Collective. Without buffers, nothing
  /// happens.
  void compute(const nn::Weights& averaged);
  /// Exchanges the model's buffers with those that were computed; the second call exchanges them back. Not collective.
  void exchange();
  /// Those that were computed, as a checkpoint has them: "ema.bn1.running_mean". Empty on ranks but 0.
  std::vector<TensorRecord> records() const;
  void forget() { values_ = {}; }

 private:
  std::unique_ptr<data::StepSampler> make_batches() const;
  void add_batches(const nn::Weights& weights, std::vector<double>& sums, const data::StepSampler& sampler,
                   std::int64_t batches);

  Parts parts_;
  Replica& replica_;
  kernels::Buffer values_;  // pinned, as ModelBuffers::on_host; empty: not computed
};

/// Removes such tensors from the state of a checkpoint, which a resumed training computes anew.
void remove_averaged_statistics(std::vector<TensorRecord>& state, std::span<const nn::Parameter> buffers);

}  // namespace gradring::train
