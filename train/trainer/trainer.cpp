// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/loader/loader.h"
#include "nn/init/torch_uniform.h"
#include "nn/models/model.h"
#include "train/trainer/evaluate.h"
#include "train/trainer/replicas.h"

namespace gradring::train {
namespace {

/// Evaluation needs no gradients, so its batch can be larger than training's without more memory.
constexpr std::int64_t kEvalBatch = 250;

/// Shards of 64 bytes for every rank.
constexpr std::size_t kShardElements = 16;

nn::ArenaLayout layout_for(const TrainConfig& config, const nn::Model& model, std::span<const nn::Parameter> parameters,
                           int world_size) {
  const auto buckets = make_buckets(parameters, nn::Program::ready_order(model), config.buckets);
  return nn::ArenaLayout(parameters, buckets, kShardElements * static_cast<std::size_t>(world_size),
                         TrainStep::kRiders);
}

std::size_t bytes_of(const nn::ArenaLayout& layout) { return layout.elements() * sizeof(float); }

}  // namespace

Trainer::Trainer(const TrainConfig& config, const TrainerWorld& world)
    : config_(config),
      world_(world),
      model_(nn::make_model(config.model, world.train_set.shape(), world.train_set.classes())),
      parameters_(nn::parameters_of(model_)),
      layout_(layout_for(config, model_, parameters_, world.group.world_size())),
      weight_memory_(world.device.allocate(bytes_of(layout_))),
      gradient_memory_(world.group.allocate(bytes_of(layout_))),
      weights_{layout_, weight_memory_.as<float>()},
      gradients_{layout_, gradient_memory_->as<float>()},
      train_program_(model_, config.batch_size, nn::ProgramMode::training, world.backend, world.device),
      eval_program_(model_, kEvalBatch, nn::ProgramMode::evaluation, world.backend, world.device),
      optimizer_(make_optimizer(config.optimizer, world.kernels, world.device, layout_)),
      stream_(world.device.make_stream(kernels::StreamMode::in_place)),
      ddp_(world.group, *gradient_memory_, layout_, world.device, *stream_,
           config.overlap ? kernels::StreamMode::asynchronous : kernels::StreamMode::in_place),
      step_({.device = world.device,
             .stream = *stream_,
             .kernels = world.kernels,
             .program = train_program_,
             .weights = weights_,
             .gradients = gradients_,
             .ddp = ddp_,
             .optimizer = *optimizer_},
            world.train_set.shape()),
      sampler_({.samples = world.train_set.size(),
                .rank = world.group.rank(),
                .world_size = world.group.world_size(),
                .seed = config.seed}) {
  draw_weights();
  ddp_.broadcast_weights(weights_);
}

void Trainer::draw_weights() {
  const kernels::Buffer host = world_.device.allocate(bytes_of(layout_), kernels::MemoryKind::pinned);
  std::fill_n(host.as<float>(), layout_.elements(), 0.0f);
  const nn::Arena arena{layout_, host.as<float>()};
  const auto drawn = nn::draw_torch_uniform(parameters_, config_.seed);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    nn::from_torch_order(parameters_[i], drawn[i], {arena.parameter(static_cast<int>(i)), drawn[i].size()});
  stream_->enqueue_copy(weights_.data, host.data(), host.size());
  stream_->synchronize(Deadline::after(config_.timeout));
}

Summary Trainer::run() {
  Evaluation result;
  for (std::int64_t epoch = 0; config_.epochs == 0 || epoch < config_.epochs; ++epoch) {
    run_epoch(epoch);
    result = evaluate({.device = world_.device,
                       .stream = *stream_,
                       .group = world_.group,
                       .program = eval_program_,
                       .weights = weights_,
                       .dataset = world_.test_set});
    world_.metrics.eval({.epoch = epoch, .accuracy = result.accuracy, .loss = result.loss, .samples = result.samples});
    if (enough_steps()) break;
  }
  check_finite(result.loss, "test loss after step " + std::to_string(steps_));
  const Sha256 weights = hash_of_weights();
  check_replicas(world_.group, weights, "weights at the end");
  return {.accuracy = result.accuracy,
          .loss = result.loss,
          .train_loss = epoch_loss_sum_ / static_cast<double>(epoch_samples_),
          .steps = steps_,
          .seconds = training_time_.count(),
          .samples_per_second = static_cast<double>(samples_) / training_time_.count(),
          .world_size = world_.group.world_size(),
          .device = world_.device.id().to_string(),
          .backend = std::string(world_.backend.name()),
          .parameters_sha256 = to_hex(weights)};
}

void Trainer::run_epoch(std::int64_t epoch) {
  using Clock = std::chrono::steady_clock;
  data::Loader loader(world_.train_set, world_.device,
                      {.indices = sampler_.order(epoch), .batch_size = config_.batch_size});
  epoch_loss_sum_ = 0;
  epoch_samples_ = 0;
  auto begin = Clock::now();
  for (std::int64_t step = 0; !enough_steps(); ++step) {
    const auto batch = loader.next(Deadline::after(config_.timeout));
    if (!batch) break;
    const std::int64_t samples = sampler_.global_samples(batch->position(), batch->position() + batch->count());
    const double loss = step_.run({.batch = *batch,
                                   .global_samples = samples,
                                   .learning_rate = config_.learning_rate,
                                   .deadline = Deadline::after(config_.timeout)});
    ++steps_;
    samples_ += samples;
    epoch_samples_ += samples;
    epoch_loss_sum_ += loss * static_cast<double>(samples);
    check_step(loss);

    const auto end = Clock::now();
    training_time_ += end - begin;
    world_.metrics.step({.step = steps_,
                         .epoch = epoch,
                         .step_of_epoch = step,
                         .steps_in_epoch = loader.geometry().steps(),
                         .loss = loss,
                         .learning_rate = config_.learning_rate,
                         .samples = samples,
                         .duration = end - begin,
                         .data_wait = batch->data_wait(),
                         .exposed_communication = ddp_.exposed()});
    begin = end;
  }
}

void Trainer::check_step(double loss) {
  check_finite(loss, "loss of step " + std::to_string(steps_));
  if (config_.check_replicas > 0 && steps_ % config_.check_replicas == 0)
    check_replicas(world_.group, hash_of_weights(), "weights after step " + std::to_string(steps_));
}

void Trainer::check_finite(double loss, const std::string& what) const {
  if (!std::isfinite(loss))
    throw DivergedError(fmt::format("the {} is {}: lower --lr (it is {})", what,
                                    std::isnan(loss) ? "no number" : "infinite", config_.learning_rate));
}

Sha256 Trainer::hash_of_weights() {
  const kernels::Buffer host = world_.device.allocate(bytes_of(layout_), kernels::MemoryKind::pinned);
  stream_->enqueue_copy(host.data(), weights_.data, host.size());
  stream_->synchronize(Deadline::after(config_.timeout));
  return hash_weights(parameters_, {layout_, host.as<float>()});
}

}  // namespace gradring::train
