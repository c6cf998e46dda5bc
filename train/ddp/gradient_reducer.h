// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <memory>
#include <utility>

#include "kernels/kernel_set.h"
#include "nn/program/step_observer.h"
#include "train/ddp/bucket_memory.h"
#include "train/ddp/bucket_reduction.h"
#include "train/ddp/distributed_data_parallel.h"

namespace gradring::train {

/// Device memory of a reducer, besides the gradients that backward writes.
struct ReducerBytes {
  std::size_t sums = 0;  ///< sums over the ranks that are collected in memory of their own
  std::size_t wire = 0;  ///< what travels in another type than f32, from the transport
};

/// Turns the gradients of one step's backward passes (micro-batches) into their sums over passes and ranks.
///
///   for each pass:  begin, forward and backward with this observer, enqueue_end;  after the last pass sums() hold
///
/// Four implementations:
///   replicated   every rank gets all sums: each bucket is all-reduced where backward wrote it
///   accumulated  sums the passes on the rank, and hands the last one to another reducer: PyTorch's no_sync
///   sharded      every rank gets the sums of its shards (ZeRO 2 and 3); buckets share a few slots
///   exact        sums 64-bit integers, whose bits do not depend on the order (--reproducible)
///
/// Threads   the trainer's.
class GradientReducer : public nn::StepObserver {
 public:
  /// The position of a pass in its step.
  struct Pass {
    bool first = true;
    bool last = true;
    auto operator<=>(const Pass&) const = default;
  };
  /// Begins a pass. Returns where backward writes gradients and loss.
  virtual const nn::Gradients& begin(Pass pass) = 0;
  /// Where the last pass writes.
  virtual const nn::Gradients& gradients() const = 0;
  /// To be called when the whole pass is enqueued.
  virtual void enqueue_end() = 0;
  /// The factor of all gradients, in device memory; called once, before the first pass.
  virtual void set_loss_scale(const float* /*loss_scale*/) {}

  /// The sums of this rank's shards, and of the losses.
  virtual ShardPointers sums() const = 0;
  virtual const float* loss_sum() const = 0;
  virtual ReducerBytes bytes() const = 0;

  void before_forward() override {}
  void before_backward() override {}
  void weights_needed(std::span<const int> /*parameters*/) override {}
  void gradients_begin(std::span<const int> /*parameters*/) override {}
};

struct GradientReducerSpec {
  WireSpec wire;
  bool sharded = false;
  bool accumulates = false;      ///< sums passes on the rank first; not with exact_terms
  std::int64_t exact_terms = 0;  ///< passes of all ranks in a step, for exact sums; 0: sums in f32
};

/// What reducers work with. All of it must outlive them.
struct ReducerParts {
  kernels::Device& device;
  const kernels::KernelSet& kernels;
  comm::ProcessGroup& group;
  kernels::Stream& stream;        ///< of forward and backward
  const BucketMemory& gradients;  ///< where backward writes; with a slot per bucket unless sharded
  const Shards& shards;
  DistributedDataParallel& ddp;
};

/// Each is collective.
std::unique_ptr<GradientReducer> make_replicated_reducer(const WireSpec& wire, const ReducerParts& parts);
std::unique_ptr<GradientReducer> make_sharded_reducer(const WireSpec& wire, const ReducerParts& parts);
std::unique_ptr<GradientReducer> make_accumulated_reducer(std::unique_ptr<GradientReducer> next,
                                                          const ReducerParts& parts);
std::unique_ptr<GradientReducer> make_exact_reducer(const GradientReducerSpec& spec, const ReducerParts& parts);

inline std::unique_ptr<GradientReducer> make_gradient_reducer(const GradientReducerSpec& spec,
                                                              const ReducerParts& parts) {
  if (spec.exact_terms > 0) return make_exact_reducer(spec, parts);
  auto reducer = spec.sharded ? make_sharded_reducer(spec.wire, parts) : make_replicated_reducer(spec.wire, parts);
  return spec.accumulates ? make_accumulated_reducer(std::move(reducer), parts) : std::move(reducer);
}

}  // namespace gradring::train
