// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "train/config/usage_error.h"
#include "train/feed/loader_feed.h"
#include "train/feed/resident_feed.h"
#include "train/precision/precision.h"
#include "train/trainer/check_replicas.h"
#include "train/trainer/evaluate.h"

namespace gradring::train {
namespace {

/// Evaluation needs no gradients, so its batch can be larger than training's without more memory.
constexpr std::int64_t kEvalBatch = 250;

/// Where the training set lies is the device's to decide, if nobody says: a GPU has the room, and copies are what it waits
/// for; a CPU reads the loader's memory in place.
bool is_resident(const TrainConfig& config, const kernels::Device& device) {
  return config.resident == "on" || (config.resident == "auto" && device.id().kind == kernels::DeviceKind::cuda);
}

std::unique_ptr<BatchFeed> make_feed(const TrainConfig& config, const TrainerWorld& world, Replica& replica) {
  const FeedSpec spec{.dataset = world.train_set,
                      .device = world.device,
                      .kernels = world.kernels,
                      .batch_size = config.batch_size,
                      .dtype = replica.program().dtype()};
  if (!is_resident(config, world.device)) return std::make_unique<LoaderFeed>(spec);
  return std::make_unique<ResidentFeed>(spec, replica.stream(), Deadline::after(config.timeout));
}

comm::AllReduceAlgorithm algorithm_named(const std::string& name) {
  if (name == "ring") return comm::AllReduceAlgorithm::ring;
  if (name == "direct") return comm::AllReduceAlgorithm::direct;
  if (name == "nccl") return comm::AllReduceAlgorithm::nccl;
  return comm::AllReduceAlgorithm::automatic;
}

/// What options alone cannot tell: it depends on the device and the data.
void check_options(const TrainConfig& config, kernels::DType precision, std::int64_t steps) {
  if (config.wire_dtype == "fp16" && precision != kernels::DType::f16)
    throw UsageError(
        "--wire-dtype fp16 is for --precision fp16, whose loss scale keeps gradients within its range: take bf16");
  if (config.schedule.warmup_steps > steps)
    throw UsageError(fmt::format("--warmup-steps {} is more than the {} steps of this training: lower it",
                                 config.schedule.warmup_steps, steps));
}

ReplicaSpec replica_spec(const TrainConfig& config, const kernels::Device& device, std::int64_t steps) {
  const kernels::DType precision = precision_named(config.precision, device.id());
  check_options(config, precision, steps);
  return {.model = config.model,
          .batch_size = config.batch_size,
          .precision = precision,
          .loss_scaling = loss_scaling_for(config, precision),
          .optimizer = config.optimizer,
          .learning_rates = learning_rates(config.schedule, config.learning_rate, steps),
          .clip_norm = config.clip_norm,
          .buckets = config.buckets,
          .wire = {.dtype = precision_named(config.wire_dtype, device.id()),
                   .algorithm = algorithm_named(config.allreduce)},
          .accumulates = config.accumulate > 1,
          .overlap = config.overlap,
          .recorded = config.cuda_graph && device.id().kind == kernels::DeviceKind::cuda,
          .seed = config.seed};
}

}  // namespace

Trainer::Trainer(const TrainConfig& config, const TrainerWorld& world)
    : config_(config),
      world_(world),
      sampler_({.samples = world.train_set.size(),
                .rank = world.group.rank(),
                .world_size = world.group.world_size(),
                .seed = config.seed}),
      windows_{.samples = sampler_.size(), .batch_size = config.accumulate * config.batch_size},
      replica_(replica_spec(config, world.device, all_steps()), {.device = world.device,
                                                                 .kernels = world.kernels,
                                                                 .backend = world.backend,
                                                                 .group = world.group,
                                                                 .sample = world.train_set.shape(),
                                                                 .classes = world.train_set.classes()}),
      eval_program_(replica_.model(), kEvalBatch, nn::ProgramMode::evaluation, world.backend, world.device,
                    replica_.program().dtype()),
      feed_(make_feed(config, world, replica_)) {}

Trainer::~Trainer() {
  try {
    replica_.stream().synchronize(Deadline::after(config_.timeout));
  } catch (const std::exception&) {
    // What went wrong there was thrown before, or matters to nobody any more.
  }
}

std::int64_t Trainer::all_steps() const {
  if (config_.epochs == 0) return config_.steps;
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / std::max<std::int64_t>(windows_.steps(), 1);
  const std::int64_t of_epochs = std::min(config_.epochs, most) * windows_.steps();
  return config_.steps > 0 ? std::min(config_.steps, of_epochs) : of_epochs;
}

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
  epoch_loss_sum_ = 0;
  epoch_samples_ = 0;
  feed_->begin_epoch(replica_.stream(), sampler_.order(epoch));
  last_report_ = Clock::now();
  for (std::int64_t step = 0; step < windows_.steps() && !enough_steps(); ++step) {
    enqueue_step(epoch, step);
    take_results(config_.check_replicas > 0);  // the weights to compare are those after this step
  }
  take_results(true);
}

void Trainer::enqueue_step(std::int64_t epoch, std::int64_t step) {
  const std::int64_t begin = windows_.begin(step);
  const std::int64_t end = windows_.end(step);
  Pending pending{.epoch = epoch, .step_of_epoch = step, .samples = sampler_.global_samples(begin, end)};
  for (std::int64_t position = begin; position < end;) {
    const auto batch = feed_->next(Deadline::after(config_.timeout));
    check(batch && batch->position == position, "the batches of an epoch ended before its steps");
    pending.data_wait += batch->data_wait;
    position += batch->count;
    replica_.step().enqueue({.source = *feed_,
                             .count = batch->count,
                             .global_samples = pending.samples,
                             .pass = {.first = batch->position == begin, .last = position == end}});
  }
  ++enqueued_;
  pending_.push_back(pending);
}

void Trainer::take_results(bool all) {
  while (!pending_.empty()) {
    const bool must = all || replica_.step().full();
    const std::optional<StepResult> result =
        must ? replica_.step().wait(Deadline::after(config_.timeout)) : replica_.step().poll();
    if (!result) return;
    report(*result);
  }
}

void Trainer::report(const StepResult& result) {
  const Pending step = pending_.front();
  pending_.pop_front();
  ++steps_;
  samples_ += step.samples;
  check_step(result);
  if (std::isfinite(result.loss)) {
    epoch_samples_ += step.samples;
    epoch_loss_sum_ += result.loss * static_cast<double>(step.samples);
  }
  const auto now = Clock::now();
  const auto duration = now - last_report_;
  training_time_ += duration;
  world_.metrics.step({.step = steps_,
                       .epoch = step.epoch,
                       .step_of_epoch = step.step_of_epoch,
                       .steps_in_epoch = windows_.steps(),
                       .loss = result.loss,
                       .learning_rate = learning_rate_of(result),
                       .samples = step.samples,
                       .duration = duration,
                       .data_wait = step.data_wait,
                       .exposed_communication = replica_.exposed_communication(),
                       .gradient_norm = config_.clip_norm > 0 ? std::optional(result.gradient_norm) : std::nullopt,
                       .loss_scale = result.loss_scale,
                       .skipped = result.skipped});
  last_report_ = now;
}

double Trainer::learning_rate_of(const StepResult& result) const {
  return learning_rate_at(config_.schedule, config_.learning_rate, all_steps(), result.applied_steps);
}

void Trainer::check_step(const StepResult& result) {
  if (!result.skipped)
    check_finite(result.loss, "loss of step " + std::to_string(steps_));
  else if (!replica_.step().scales_loss())
    throw DivergedError(
        fmt::format("the gradients of step {} are not finite: lower --lr (it is {})", steps_, config_.learning_rate));
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
