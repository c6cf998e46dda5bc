// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/trainer.h"

#include <fmt/format.h>

#include <cmath>

#include "data/loader/loader.h"
#include "train/precision/precision.h"
#include "train/trainer/check_replicas.h"
#include "train/trainer/evaluate.h"

namespace gradring::train {
namespace {

/// Evaluation needs no gradients, so its batch can be larger than training's without more memory.
constexpr std::int64_t kEvalBatch = 250;

ReplicaSpec replica_spec(const TrainConfig& config, const kernels::Device& device) {
  const kernels::DType precision = precision_named(config.precision, device.id());
  return {.model = config.model,
          .batch_size = config.batch_size,
          .precision = precision,
          .loss_scaling = loss_scaling_for(config, precision),
          .optimizer = config.optimizer,
          .buckets = config.buckets,
          .overlap = config.overlap,
          .seed = config.seed};
}

}  // namespace

Trainer::Trainer(const TrainConfig& config, const TrainerWorld& world)
    : config_(config),
      world_(world),
      replica_(replica_spec(config, world.device), {.device = world.device,
                                                    .kernels = world.kernels,
                                                    .backend = world.backend,
                                                    .group = world.group,
                                                    .sample = world.train_set.shape(),
                                                    .classes = world.train_set.classes()}),
      eval_program_(replica_.model(), kEvalBatch, nn::ProgramMode::evaluation, world.backend, world.device,
                    replica_.program().dtype()),
      sampler_({.samples = world.train_set.size(),
                .rank = world.group.rank(),
                .world_size = world.group.world_size(),
                .seed = config.seed}) {}

Summary Trainer::run() {
  Evaluation result;
  for (std::int64_t epoch = 0; config_.epochs == 0 || epoch < config_.epochs; ++epoch) {
    run_epoch(epoch);
    result = evaluate({.device = world_.device,
                       .stream = replica_.stream(),
                       .kernels = world_.kernels,
                       .group = world_.group,
                       .program = eval_program_,
                       .weights = replica_.weights(),
                       .dataset = world_.test_set});
    world_.metrics.eval({.epoch = epoch, .accuracy = result.accuracy, .loss = result.loss, .samples = result.samples});
    if (enough_steps()) break;
  }
  check_finite(result.loss, "test loss after step " + std::to_string(steps_));
  const Sha256 weights = hash_of_weights();
  check_replicas(world_.group, weights, "weights at the end");
  return {.accuracy = result.accuracy,
          .loss = result.loss,
          .train_loss = epoch_samples_ > 0 ? epoch_loss_sum_ / static_cast<double>(epoch_samples_) : 0,
          .steps = steps_,
          .seconds = training_time_.count(),
          .samples_per_second = static_cast<double>(samples_) / training_time_.count(),
          .world_size = world_.group.world_size(),
          .device = world_.device.id().to_string(),
          .backend = std::string(world_.backend.name()),
          .precision = precision_name(replica_.program().dtype()),
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
    const StepResult result = replica_.step().run({.batch = *batch,
                                                   .global_samples = samples,
                                                   .learning_rate = config_.learning_rate,
                                                   .deadline = Deadline::after(config_.timeout)});
    ++steps_;
    samples_ += samples;
    check_step(result);
    if (std::isfinite(result.loss)) {
      epoch_samples_ += samples;
      epoch_loss_sum_ += result.loss * static_cast<double>(samples);
    }

    const auto end = Clock::now();
    training_time_ += end - begin;
    world_.metrics.step({.step = steps_,
                         .epoch = epoch,
                         .step_of_epoch = step,
                         .steps_in_epoch = loader.geometry().steps(),
                         .loss = result.loss,
                         .learning_rate = config_.learning_rate,
                         .samples = samples,
                         .duration = end - begin,
                         .data_wait = batch->data_wait(),
                         .exposed_communication = replica_.exposed_communication(),
                         .loss_scale = result.loss_scale,
                         .skipped = result.skipped});
    begin = end;
  }
}

void Trainer::check_step(const StepResult& result) {
  if (!result.skipped)
    check_finite(result.loss, "loss of step " + std::to_string(steps_));
  else if (result.loss_scale <= kLeastLossScale)
    throw DivergedError(
        fmt::format("the gradients of step {} are not finite even at a loss scale of {}: lower --lr (it is {})", steps_,
                    result.loss_scale, config_.learning_rate));
  if (config_.check_replicas > 0 && steps_ % config_.check_replicas == 0)
    check_replicas(world_.group, hash_of_weights(), "weights after step " + std::to_string(steps_));
}

void Trainer::check_finite(double loss, const std::string& what) const {
  if (!std::isfinite(loss))
    throw DivergedError(fmt::format("the {} is {}: lower --lr (it is {})", what,
                                    std::isnan(loss) ? "no number" : "infinite", config_.learning_rate));
}

Sha256 Trainer::hash_of_weights() {
  const kernels::Buffer host = replica_.weights_on_host(Deadline::after(config_.timeout));
  return hash_weights(replica_.parameters(), {replica_.layout(), host.as<float>()});
}

}  // namespace gradring::train
