// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/replica_gradients.h"

#include "kernels/runtime/error.h"
#include "kernels/variant.h"
#include "train/parallel/gradient_accumulation.h"
#include "train/parallel/rotating_gradients.h"

namespace gradring::train {
namespace {

using kernels::DType;

std::unique_ptr<DistributedDataParallel> make_ddp(const ReplicaGradientsSpec& spec,
                                                  const ReplicaGradients::Parts& parts, BucketSum& sum) {
  return std::make_unique<DistributedDataParallel>(
      parts.group, sum, parts.shards.layout(), parts.device, parts.stream,
      spec.overlap ? kernels::StreamMode::asynchronous : kernels::StreamMode::in_place);
}

}  // namespace

ReplicaGradients::ReplicaGradients(const ReplicaGradientsSpec& spec, const Parts& parts)
    : memory_({.places = spec.sharded ? spec.places : 0}, parts.group, parts.shards.layout()),
      wire_(spec.wire, {.group = parts.group,
                        .gradients = memory_,
                        .shards = parts.shards,
                        .cast = kernels::pick_variant(parts.kernels.cast, parts.device, spec.wire.dtype),
                        .buckets_stay = !spec.sharded}) {
  if (spec.exact_terms > 0)
    keep_exact(spec, parts);
  else
    spec.sharded ? keep_shards(spec, parts) : keep_all(spec, parts);
}

void ReplicaGradients::keep_all(const ReplicaGradientsSpec& spec, const Parts& parts) {
  ddp_ = make_ddp(spec, parts, wire_);
  path_ = std::make_unique<GradientAccumulation>(
      GradientAccumulation::Parts{
          .device = parts.device,
          .stream = parts.stream,
          .sums = gradients_within(memory_, wire_.riders()),
          .next = *ddp_,
          .accumulate = kernels::pick_variant(parts.kernels.accumulate, parts.device, DType::f32)},
      spec.accumulates);
  sums_ = shards_within(parts.shards, memory_);
  riders_ = wire_.riders();
}

void ReplicaGradients::keep_exact(const ReplicaGradientsSpec& spec, const Parts& parts) {
  if (!parts.group.sums(DType::i64))
    throw InvalidArgument(
        "--reproducible adds whole numbers over the ranks, which is not built for NCCL yet: take one rank, or a CPU");
  units_.emplace(parts.group, parts.shards.layout(), spec.wire.algorithm);
  ddp_ = make_ddp(spec, parts, *units_);
  path_ = std::make_unique<ExactGradients>(
      ExactGradients::Parts{.stream = parts.stream,
                            .sums = gradients_within(memory_, wire_.riders()),
                            .units = *units_,
                            .next = *ddp_,
                            .kernel = kernels::pick_variant(parts.kernels.exact_sum, parts.device, DType::f32),
                            .terms = spec.exact_terms});
  sums_ = shards_within(parts.shards, memory_);
  riders_ = wire_.riders();
}

void ReplicaGradients::keep_shards(const ReplicaGradientsSpec& spec, const Parts& parts) {
  collected_.emplace(
      ShardedSums::Parts{.device = parts.device,
                         .gradients = memory_,
                         .shards = parts.shards,
                         .wire = wire_,
                         .accumulate = kernels::pick_variant(parts.kernels.accumulate, parts.device, DType::f32)});
  ddp_ = make_ddp(spec, parts, *collected_);
  path_ = std::make_unique<RotatingGradients>(RotatingGradients::Parts{
      .stream = parts.stream, .gradients = memory_, .sums = *collected_, .riders = wire_.riders(), .next = *ddp_});
  sums_ = collected_->pointers();
  riders_ = collected_->riders();
}

}  // namespace gradring::train
