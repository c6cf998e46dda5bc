// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "data/loader/sampler.h"
#include "train/core/config/resolve.h"
#include "train/core/trainer/parameter_tensors.h"

namespace gradring::train {
namespace {

using kernels::TraceCategory;
using kernels::TraceScope;

/// Whether the host enqueues steps before earlier ones are done.
bool runs_ahead(const kernels::Device& device) { return device.id().kind == kernels::DeviceKind::cuda; }

}  // namespace

Summary Trainer::run() {
  std::optional<ModelEvaluation> selected;
  while (!is_over()) {
    if (!run_epoch()) continue;
    selected = evaluate();
    report(*selected, true);
    check_finite(selected->weights.loss, fmt::format("{} loss after step {}", selected->split, progress_.steps),
                 config_.learning_rate);
    if (progress_.position == 0) progress_.epoch_evaluated(selected->weights.accuracy);
    save(selected->weights.accuracy);
  }
  if (stops_early())
    world_.metrics.remark(fmt::format("stopped early after epoch {}: {} epoch{} without a higher validation accuracy",
                                      progress_.epoch, progress_.epochs_since_best,
                                      progress_.epochs_since_best == 1 ? "" : "s"));
  if (!selected) {  // nothing was left to train
    selected = evaluate();
    if (progress_.position > 0) {  // a completed epoch is in the metrics
      report(*selected, true);
      save(selected->weights.accuracy);
    }
  }
  const ModelEvaluation at_end = evaluate_at_end(*selected);
  const Sha256 weights = hash_of_weights();
  check_replicas(world_.group, weights, "weights at the end");
  saver_.finish();
  return summary_of(*selected, at_end, weights);
}

void Trainer::check_updates() { nan_policy_.check_updates(replica_.step().state(world_.group.after_collectives())); }

ModelEvaluation Trainer::evaluate() {
  report_position("evaluating");
  const TraceScope traced(trace_, TraceCategory::evaluation, "evaluation");
  return evaluator_.select();
}

ModelEvaluation Trainer::evaluate_at_end(const ModelEvaluation& selected) {
  report_position("evaluating");
  const TraceScope traced(trace_, TraceCategory::evaluation, "evaluation");
  ModelEvaluation at_end = evaluator_.at_end(selected);
  const std::int64_t epoch = progress_.position > 0 ? progress_.epoch + 1 : progress_.epoch;  // the last one
  if (at_end.split != selected.split) world_.metrics.event(eval_record(at_end, progress_.steps, epoch, true));
  return at_end;
}

void Trainer::report(const ModelEvaluation& found, bool ends_epoch) {
  world_.metrics.event(eval_record(found, progress_.steps, epoch_ + 1, ends_epoch));
}

void Trainer::evaluate_within_epoch() {
  report(evaluate(), false);
  report_parameters();
  last_report_ = Clock::now();  // no step's time
}

bool Trainer::run_epoch() {
  epoch_ = progress_.epoch;
  const std::int64_t first = sampler_->step_at(progress_.position).value();
  if (first == 0) {
    progress_.epoch_loss_sum = 0;
    progress_.epoch_samples = 0;
  }
  std::vector<std::int64_t> order = sampler_->order(epoch_);
  const bool at_end = first == sampler_->steps();  // a request has stopped the run after the last step
  const std::int64_t begin = at_end ? std::ssize(order) : sampler_->step(first).begin;
  BatchLoader::Epoch epoch{.number = epoch_, .order = std::move(order), .position = begin};
  if (config_.augment.mixes()) epoch.visits = sampler_->visits(epoch_);
  batches_->begin_epoch(replica_.stream(), std::move(epoch));
  last_report_ = Clock::now();
  for (std::int64_t step = first; step < sampler_->steps() && !enough_steps(); ++step) {
    trace_next_step();
    const TraceScope traced(trace_, TraceCategory::step, "step", {enqueued_ + 1});
    enqueue_step(epoch_, step);
    const bool ends = step + 1 == sampler_->steps() || enough_steps();
    const bool saves = !ends && config_.save_every_steps > 0 && enqueued_ % config_.save_every_steps == 0;
    const bool evaluates = !ends && config_.eval_every > 0 && enqueued_ % config_.eval_every == 0;
    const bool all = saves || evaluates || config_.check_replicas > 0;  // these need the weights after this step
    take_results(all);
    if (rollback_.is_due(enqueued_, all)) return !roll_back_if_requested();
    if (evaluates) evaluate_within_epoch();
    if (saves) save(std::nullopt);
    if (handle_requests(ends)) return false;
  }
  take_results(true);
  if (roll_back_if_requested()) return false;
  report_parameters();  // with --zero 1, save() gathers state into the memory of the gradients
  save(std::nullopt);   // an evaluation that fails loses no step: a resume begins with it
  if (progress_.position == sampler_->end_position()) {
    ++progress_.epoch;
    progress_.position = 0;
  }
  return true;
}

/// A GPU's activities begin and end with complete steps.
void Trainer::trace_next_step() {
  if (!world_.trace) return;
  if (world_.trace->changes_at(enqueued_ + 1)) take_results(true);
  world_.trace->before_step(enqueued_ + 1);
}

bool Trainer::roll_back_if_requested() {
  if (!rollback_.requested()) return false;
  take_results(true);
  saver_.wait();
  resume(rollback_.take());
  rollback_.done(progress_.steps, progress_.epoch);
  return true;
}

void Trainer::save(std::optional<double> score) {
  rollback_.saved(progress_.steps);
  if (saved_ == progress_.steps && !score) return;  // with a score, one that was saved on request is replaced
  saved_ = progress_.steps;
  report_position("saving");
  const TraceScope traced(trace_, TraceCategory::checkpoint, "state of the checkpoint", {progress_.steps});
  saver_.wait();
  saver_.report();
  if (!world_.checkpoints && config_.zero == 0) return;  // sharded state is gathered from all ranks
  weights_gathered();
  TrainingState state{.progress = progress_,
                      .replica = replica_.save(world_.group.after_collectives()),
                      .samples_of_step = sizes_.global,
                      .computation = computation(),
                      .sample = world_.train_set.shape(),
                      .order = order_of_samples(world_, config_),
                      .cpu_level = recorded_cpu_level(world_.device),
                      .plans = plans_of(replica_.program()),
                      .device = world_.device.description(),
                      .total_steps = planned_steps(),
                      .precision = precision_name(replica_.program().dtype()),
                      .dataset = facts_,
                      .data = world_.data};
  if (!world_.checkpoints) return;
  if (!score && !non_finite_weights(state.replica.model).empty()) return;  // the last good checkpoint stays the newest
  if (score) std::ranges::move(evaluator_.averaged_statistics().records(), std::back_inserter(state.replica.state));
  world_.checkpoints->save(to_checkpoint(std::move(state), to_toml(config_), score));
}

/// On a GPU, ranks agree every 32 steps. On the CPU and on a simulated GPU, they agree after each step. The same
/// collective brings the times of all ranks to rank 0.
RunRequest Trainer::agree_on_request(bool ends_epoch) {
  constexpr std::int64_t kStepsAhead = 32;
  if (runs_ahead(world_.device) && !is_simulated(config_) && enqueued_ % kStepsAhead != 0) return RunRequest::none;
  const RunRequest mine = world_.requests ? world_.requests->take() : RunRequest::none;
  std::vector<std::int64_t> sums = {mine == RunRequest::save, mine == RunRequest::stop};
  const bool collects = enqueued_ - collected_ >= config_.log_every || (ends_epoch && enqueued_ > collected_);
  if (collects) times_.append_to(sums, world_.group, replica_.memory().peaks().total());
  {
    const TraceScope traced(trace_, TraceCategory::sync, "agreement on requests");
    world_.group.all_reduce_on_host(std::span(sums));
  }
  if (collects) {
    world_.metrics.event(times_.take(std::span(sums).subspan(2), progress_.steps));
    collected_ = enqueued_;
  }
  return sums[1] > 0 ? RunRequest::stop : sums[0] > 0 ? RunRequest::save : RunRequest::none;
}

bool Trainer::handle_requests(bool ends_epoch) {
  const RunRequest request = agree_on_request(ends_epoch);
  if (request == RunRequest::none) return false;
  take_results(true);
  const bool back = roll_back_if_requested();
  save(std::nullopt);
  if (request == RunRequest::save) return back;
  saver_.finish();
  world_.group.barrier_on_host();  // no rank exits before the checkpoint is durable
  throw Preempted(fmt::format("stopped by request after step {}", progress_.steps));
}

void Trainer::report_position(const char* doing) {
  if (world_.requests) world_.requests->at({.doing = doing, .steps = progress_.steps, .epoch = epoch_});
}

void Trainer::enqueue_step(std::int64_t epoch, std::int64_t step) {
  report_position(kTraining);
  if (world_.step_hook) world_.step_hook->before_step(enqueued_ + 1);
  const data::StepShare share = sampler_->step(step);
  Pending pending{.epoch = epoch, .step_of_epoch = step, .samples = share.samples};
  const std::int64_t divisor = config_.gradient_mean == GradientMean::ranks
                                   ? (share.end - share.begin) * world_.group.world_size()
                                   : share.samples;
  const std::int64_t most = communicates_in_every_pass(config_) ? share.most : share.end - share.begin;
  const std::int64_t passes = std::max<std::int64_t>(1, data::ceil_div(most, sizes_.pass));
  std::int64_t position = share.begin;
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    const bool has_samples = position < share.end;
    const std::int64_t first = sampler_->number_in_step(step, position - share.begin);
    const auto batch = has_samples ? next_batch() : std::optional(BatchLoader::Next());
    check(batch && (!has_samples || batch->position == position), "the batches of an epoch ended before its steps");
    pending.data_wait += batch->data_wait;
    position += batch->count;
    replica_.step().enqueue({.batch = *batches_,
                             .count = batch->count,
                             .global_samples = share.samples,
                             .divisor = divisor,
                             .pass = {.first = pass == 0, .last = pass + 1 == passes},
                             .first = first,
                             .stride = share.stride});
  }
  if (world_.step_hook) world_.step_hook->after_step();
  ++enqueued_;
  pending_.push_back(pending);
}

std::optional<BatchLoader::Next> Trainer::next_batch() {
  const TraceScope traced(trace_, TraceCategory::data, "data wait");
  return batches_->next(Deadline::after(config_.timeout));
}

void Trainer::take_results(bool all) {
  // A request to stop waits for all enqueued steps, and those of a simulated GPU are slow.
  constexpr std::size_t kMostSimulated = 4;
  while (!pending_.empty()) {
    const bool is_far_ahead = is_simulated(config_) && pending_.size() > kMostSimulated;
    const bool must = all || replica_.step().full() || is_far_ahead;
    const std::optional<StepResult> result =
        must ? replica_.step().wait(world_.group.after_collectives()) : replica_.step().poll();
    if (!result) return;
    report(*result);
  }
}

void Trainer::report(const StepResult& result) {
  const Pending step = pending_.front();
  pending_.pop_front();
  if (rollback_.requested()) return;  // this step will be undone, too
  ++progress_.steps;
  gradient_scale_ = result.loss_scale;
  progress_.position += step.samples;
  progress_.samples += step.samples;
  const NanPolicy::Action action = nan_policy_.action_for(result);
  if (action == NanPolicy::Action::roll_back) {
    rollback_.request(progress_.steps, nan_policy_.problem_of(progress_.steps, result));
    return;
  }
  saver_.report();
  check_weights();
  if (std::isfinite(result.loss)) {
    progress_.epoch_samples += step.samples;
    progress_.epoch_loss_sum += result.loss * static_cast<double>(step.samples);
  }
  const auto now = Clock::now();
  const std::chrono::duration<double> duration = now - last_report_;
  progress_.seconds += duration.count();
  const StepRecord record{
      .step = progress_.steps,
      .epoch = step.epoch + 1,
      .step_of_epoch = step.step_of_epoch,
      .steps_in_epoch = steps_of_epoch(step.step_of_epoch),
      .loss = result.loss,
      .learning_rate = learning_rate_of(result),
      .samples = step.samples,
      .duration = duration,
      .data_wait = step.data_wait,
      .exposed_communication = replica_.exposed_communication(),
      .forward = seconds_of(result.phases, &StepPhases::forward),
      .backward = seconds_of(result.phases, &StepPhases::backward),
      .optimizer = seconds_of(result.phases, &StepPhases::optimizer),
      .gradient_norm = result.gradient_norm,
      .loss_scale = result.loss_scale,
      .skipped = result.skipped,
      .ends_run = action == NanPolicy::Action::end,
      .non_finite = nan_policy_.parameter_of(result),
      .underflow = replica_.step().scales_loss() && !result.skipped ? std::optional(result.underflow) : std::nullopt};
  world_.metrics.event(record);
  times_.add(record);
  last_report_ = now;
  if (action == NanPolicy::Action::end) nan_policy_.end(progress_.steps, result);
}

/// Steps that this run makes in the epoch whose step `step_of_epoch` was just completed: --steps may end it early.
std::int64_t Trainer::steps_of_epoch(std::int64_t step_of_epoch) const {
  if (config_.steps == 0) return sampler_->steps();
  return std::min(sampler_->steps(), step_of_epoch + 1 + config_.steps - progress_.steps);
}

double Trainer::learning_rate_of(const StepResult& result) const {
  return learning_rate_at(config_.schedule, config_.learning_rate, planned_steps(), result.applied_steps);
}

void Trainer::check_weights() {
  if (config_.check_replicas > 0 && progress_.steps % config_.check_replicas == 0)
    check_replicas(world_.group, hash_of_weights(), "weights after step " + std::to_string(progress_.steps));
}

Sha256 Trainer::hash_of_weights() {
  weights_gathered();
  return replica_.hash(world_.group.after_collectives());
}

}  // namespace gradring::train
