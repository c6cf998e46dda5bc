// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/replica_gradients.h"

#include <utility>

#include "kernels/variant.h"
#include "train/parallel/exact_gradients.h"
#include "train/parallel/gradient_accumulation.h"
#include "train/parallel/replicated_gradients.h"
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
    : sharded_(spec.sharded),
      memory_({.places = spec.sharded ? spec.places : 0}, parts.group, parts.shards.layout()),
      wire_(spec.wire, {.group = parts.group,
                        .gradients = memory_,
                        .shards = parts.shards,
                        .cast = kernels::pick_variant(parts.kernels.cast, parts.device, spec.wire.dtype),
                        .buckets_stay = !spec.sharded}) {
  if (spec.exact_terms > 0) {
    keep_exact(spec, parts);
  } else {
    spec.sharded ? keep_shards(spec, parts) : keep_all(spec, parts);
    if (spec.sums_passes_first) accumulate_before(parts);
  }
}

void ReplicaGradients::keep_all(const ReplicaGradientsSpec& spec, const Parts& parts) {
  ddp_ = make_ddp(spec, parts, wire_);
  path_ = make_replicated();
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
  path_ = make_rotation(parts, *collected_);
  sums_ = collected_->pointers();
  riders_ = collected_->riders();
}

void ReplicaGradients::keep_exact(const ReplicaGradientsSpec& spec, const Parts& parts) {
  rounding_.emplace(
      ExactRounding::Parts{.group = parts.group,
                           .stream = parts.stream,
                           .kernel = kernels::pick_variant(parts.kernels.exact_sum, parts.device, DType::f32),
                           .parameters = parts.shards.layout().parameters(),
                           .terms = spec.exact_terms});
  units_.emplace(
      ExactUnits::Spec{.places = sharded_ ? spec.places : 0, .algorithm = spec.wire.algorithm},
      ExactUnits::Parts{.group = parts.group,
                        .device = parts.device,
                        .stream = parts.stream,
                        .shards = parts.shards,
                        .rounding = *rounding_,
                        .accumulate = kernels::pick_variant(parts.kernels.accumulate, parts.device, DType::i64)});
  ddp_ = make_ddp(spec, parts, *units_);
  inner_ = sharded_ ? make_rotation(parts, *units_) : make_replicated();
  exact_sums_ = parts.device.allocate(sharded_ ? parts.shards.elements() * sizeof(float) : 0);
  sums_ = sharded_ ? packed_shards(parts.shards, exact_sums_.as<float>()) : shards_within(parts.shards, memory_);
  riders_ = wire_.riders();
  path_ = std::make_unique<ExactGradients>(ExactGradients::Parts{.places = gradients_within(memory_, wire_.riders()),
                                                                 .sums = sums_,
                                                                 .rounding = *rounding_,
                                                                 .units = *units_,
                                                                 .inner = *inner_});
}

std::unique_ptr<GradientPath> ReplicaGradients::make_replicated() {
  return std::make_unique<ReplicatedGradients>(gradients_within(memory_, wire_.riders()), *ddp_);
}

std::unique_ptr<GradientPath> ReplicaGradients::make_rotation(const Parts& parts, CollectedSums& sums) {
  return std::make_unique<RotatingGradients>(RotatingGradients::Parts{
      .stream = parts.stream, .gradients = memory_, .sums = sums, .riders = wire_.riders(), .next = *ddp_});
}

void ReplicaGradients::accumulate_before(const Parts& parts) {
  path_ = std::make_unique<GradientAccumulation>(
      GradientAccumulation::Parts{
          .device = parts.device,
          .stream = parts.stream,
          .places = gradients_within(memory_, wire_.riders()),
          .accumulate = kernels::pick_variant(parts.kernels.accumulate, parts.device, DType::f32)},
      std::move(path_));
}

std::size_t ReplicaGradients::sum_bytes() const {
  if (!sharded_) return memory_.bytes();
  return collected_ ? collected_->bytes() : exact_sums_.size() + units_->collected_bytes();
}

std::size_t ReplicaGradients::wire_bytes() const {
  return wire_.bytes() + (units_ ? units_->place_bytes() + rounding_->bytes() : 0);
}

}  // namespace gradring::train
