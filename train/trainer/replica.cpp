// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/replica.h"

#include <algorithm>
#include <utility>

#include "kernels/variant.h"
#include "nn/init/torch_uniform.h"

namespace gradring::train {
namespace {

/// Shards of 64 bytes for every rank.
constexpr std::size_t kShardElements = 16;

nn::ArenaLayout layout_for(const BucketLimits& buckets, const nn::Model& model,
                           std::span<const nn::Parameter> parameters, int world_size) {
  return nn::ArenaLayout(parameters, make_buckets(parameters, nn::Program::ready_order(model), buckets),
                         kShardElements * static_cast<std::size_t>(world_size), TrainStep::kRiders);
}

std::size_t bytes_of(const nn::ArenaLayout& layout) { return layout.elements() * sizeof(float); }

template <class Part>
std::unique_ptr<Part> decorated(const std::function<std::unique_ptr<Part>(std::unique_ptr<Part>)>& decorate,
                                std::unique_ptr<Part> part) {
  return decorate ? decorate(std::move(part)) : std::move(part);
}

}  // namespace

Replica::Replica(const ReplicaSpec& spec, const ReplicaPlace& place, const ReplicaDecorators& decorators)
    : device_(place.device),
      model_(nn::make_model(spec.model, place.sample, place.classes)),
      parameters_(nn::parameters_of(model_)),
      layout_(layout_for(spec.buckets, model_, parameters_, place.group.world_size())),
      weight_memory_(place.device.allocate(bytes_of(layout_))),
      gradient_memory_(place.group.allocate(bytes_of(layout_))),
      master_{layout_, weight_memory_.as<float>()},
      gradients_{layout_, gradient_memory_->as<float>()},
      weights_(master_, spec.precision, place.device,
               kernels::pick_variant(place.kernels.cast, place.device, spec.precision)),
      program_(model_, spec.batch_size, nn::ProgramMode::training, place.backend, place.device, spec.precision),
      optimizer_(decorated(decorators.optimizer, make_optimizer(spec.optimizer, place.kernels, place.device, layout_))),
      stream_(decorated(decorators.stream, place.device.make_stream(kernels::StreamMode::in_place))),
      wire_(spec.wire, place.group, *gradient_memory_, layout_,
            kernels::pick_variant(place.kernels.cast, place.device, spec.wire.dtype)),
      ddp_(place.group, *gradient_memory_, wire_, layout_, place.device, *stream_,
           spec.overlap ? kernels::StreamMode::asynchronous : kernels::StreamMode::in_place),
      accumulation_({.device = place.device,
                     .stream = *stream_,
                     .sums = gradients_,
                     .next = ddp_,
                     .accumulate = kernels::pick_variant(place.kernels.accumulate, place.device, kernels::DType::f32)},
                    spec.accumulates),
      step_({.device = place.device,
             .stream = *stream_,
             .kernels = place.kernels,
             .program = program_,
             .master = master_,
             .weights = weights_,
             .gradients = gradients_,
             .ddp = ddp_,
             .accumulation = accumulation_,
             .optimizer = *optimizer_,
             .loss_scaling = spec.loss_scaling,
             .learning_rates = spec.learning_rates,
             .clip_norm = spec.clip_norm,
             .recorded = spec.recorded}) {
  draw_weights(spec.seed, Deadline::after(place.group.timeout()));
  ddp_.broadcast_weights(master_);
  weights_.enqueue_refresh(*stream_);
}

void Replica::draw_weights(std::uint64_t seed, Deadline deadline) {
  const kernels::Buffer host = device_.allocate(bytes_of(layout_), kernels::MemoryKind::pinned);
  std::fill_n(host.as<float>(), layout_.elements(), 0.0f);
  const nn::Arena arena{layout_, host.as<float>()};
  const auto drawn = nn::draw_torch_uniform(parameters_, seed);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    nn::from_torch_order(parameters_[i], drawn[i], {arena.parameter(static_cast<int>(i)), drawn[i].size()});
  stream_->enqueue_copy(master_.data, host.data(), host.size());
  stream_->synchronize(deadline);
}

kernels::Buffer Replica::weights_on_host(Deadline deadline) {
  kernels::Buffer host = device_.allocate(bytes_of(layout_), kernels::MemoryKind::pinned);
  stream_->enqueue_copy(host.data(), master_.data, host.size());
  stream_->synchronize(deadline);
  return host;
}

}  // namespace gradring::train
