// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "kernels/runtime/stream.h"
#include "nn/parameter/weights.h"
#include "nn/program/step_observer.h"
#include "train/optim/optimizer.h"
#include "train/parallel/bucket_memory.h"
#include "train/parallel/shards.h"

namespace gradring::train {

/// What weights take of a device's memory.
struct WeightBytes {
  std::size_t whole = 0;   ///< that layers read
  std::size_t master = 0;  ///< f32 weights beside those
  std::size_t places = 0;  ///< through which weights go while layers read them
};

/// The weights that the layers read, and the f32 weights that are trained (master weights), of which each rank has its own
/// shards.
///
/// Threads   that of the trainer.
class ComputeWeights {
 public:
  virtual ~ComputeWeights() = default;

  /// What a training program reads, with observer() listening to it.
  virtual const nn::Weights& view() const = 0;
  virtual nn::StepObserver& observer() = 0;
  /// All of them at once, for who cannot have the observer; null where view() has that. Enqueues on `stream`; blocks until
  /// all ranks have come.
  virtual std::unique_ptr<BucketMemory> gather_whole(kernels::Stream& stream) = 0;

  /// This rank's shards, in f32.
  virtual const ShardPointers& master() const = 0;
  /// The master weights as an arena, where this rank has them all; else null.
  virtual const float* whole_master() const = 0;
  /// Where the optimizer is to leave a rounded copy of this rank's shard of a bucket, if anywhere.
  virtual RoundedCopy copy(int bucket) const = 0;

  /// Brings what layers read up to date: once master weights were drawn or loaded.
  virtual void enqueue_refresh(kernels::Stream& stream) = 0;
  /// The same after an optimizer's step, which has left the copies of this rank's shards.
  virtual void enqueue_gather(kernels::Stream& stream) = 0;

  virtual WeightBytes bytes() const = 0;
};

}  // namespace gradring::train
