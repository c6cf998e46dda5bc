// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "train/core/ddp/parameter_groups.h"
#include "train/core/trainer/computation.h"
#include "train/core/trainer/dataset_record.h"
#include "train/core/trainer/parameter_names.h"
#include "train/core/trainer/parameter_tensors.h"
#include "train/core/trainer/torch_optimizer_state.h"
#include "train/core/trainer/trainer.h"
#include "train/core/trainer/whitening.h"
#include "train/options/parse_value.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

/// Averaged weights that begin as the weights. Buffers are not averaged.
void begin_average(ReplicaState& state, std::span<const nn::Parameter> buffers) {
  SplitRecords split = split_records(state.model, buffers);
  for (TensorRecord& tensor : split.first) {
    tensor.name.insert(0, std::string(kEmaState) + ".");
    state.state.push_back(std::move(tensor));
  }
}

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches(pattern, name); });
}

/// Replaces the tensors whose names match by those of `fresh`.
void reinitialize(std::vector<TensorRecord>& tensors, const std::vector<std::string>& patterns,
                  std::span<const TensorRecord> fresh) {
  std::erase_if(tensors, [&](const TensorRecord& tensor) { return matches_any(patterns, tensor.name); });
  std::ranges::copy_if(fresh, std::back_inserter(tensors),
                       [&](const TensorRecord& tensor) { return matches_any(patterns, tensor.name); });
}

/// Errors    CheckpointError that names --reinit if a tensor has another shape than the model's.
void check_shapes(const nn::Model& model, const FirstWeights& weights) {
  const TensorDifferences differences =
      compare_tensors(parameter_tensors(nn::tensors_of(model)), infos_of(weights.tensors));
  if (differences.other_shape.empty()) return;
  const std::string& first = differences.other_shape.front().name;
  throw CheckpointError(weights.from, differences.to_string(),
                        fmt::format("initialize such layers anew with --reinit '{}.*', as for another number of "
                                    "classes, or select the model that it belongs to with --model",
                                    first.substr(0, first.rfind('.'))));
}

}  // namespace

Trainer::Trainer(const TrainConfig& config, const TrainerWorld& world)
    : config_(config),
      world_(world),
      trace_(world.trace ? &world.trace->compute() : nullptr),
      sizes_(step_sizes(config, world.group.world_size())),
      facts_(facts_of(config, world.train_set)),
      sampler_(make_steps(config, sizes_, world.train_set, world.group.rank(), world.group.world_size())),
      replica_(replica_spec(config, world.device, sizes_, *sampler_), {.device = world.device,
                                                                       .kernels = world.kernels,
                                                                       .backend = world.backend,
                                                                       .group = world.group,
                                                                       .sample = world.train_set.shape(),
                                                                       .classes = world.train_set.classes(),
                                                                       .others = world.others}),
      batches_(make_batch_loader(config,
                                 {.dataset = world.train_set,
                                  .device = replica_.memory().on(MemoryClass::batches),
                                  .kernels = world.kernels,
                                  .batch_size = sizes_.pass,
                                  .window = sampler_->micro_batch_of_rank(),
                                  .normalize = data::normalize_spec(facts_),
                                  .augment = config.augment,
                                  .augment_seed = config.seed,
                                  .repeats_samples = config.sampler == Sampler::balanced,
                                  .threads = loader_threads(config, world.device, world.group.world_size()),
                                  .trace = world.trace ? &world.trace->loader() : nullptr},
                                 replica_)),
      evaluator_(world_, replica_,
                 {.normalize = data::normalize_spec(facts_),
                  .tta = config.tta,
                  .resident = is_resident(config, world.device),
                  .recorded = records_steps(config, world.device),
                  .micro_batch = config.reproducible && config.sync_batchnorm ? sizes_.micro_batch : 0,
                  .shard = sizes_.shard}),
      nan_policy_({.on_nan = config.on_nan,
                   .scales_loss = replica_.step().scales_loss(),
                   .learning_rate = config.learning_rate,
                   .parameters = replica_.parameters()}),
      rollback_(world_),
      saver_(world_, config.timeout, config.on_save_error == OnSaveError::stop) {
  if (world.trace) replica_.trace(world.trace->work(), world.trace->communication());
}

Trainer::~Trainer() {
  try {
    replica_.stream().synchronize(Deadline::after(config_.timeout));
  } catch (const std::exception&) {
    // It was thrown before, or is no longer relevant.
  }
}

JsonValue Trainer::computation() const {
  if (!config_.reproducible) return {};
  TrainConfig resolved = resolved_computation(config_, sizes_, world_.device.id());
  resolved.device = world_.device.id().kind == kernels::DeviceKind::cuda ? "cuda" : "cpu";
  if (nn::buffers_of(replica_.model()).empty()) resolved.accumulate = 1;  // no statistics of batches
  return computation_of(resolved);
}

std::vector<std::string> Trainer::resume(ResumePoint point) {
  point.checkpoint.about = JsonValue::parse(world_.group.broadcast_on_host(point.checkpoint.about.text(), 0));
  point.from = world_.group.broadcast_on_host(point.from.string(), 0);
  point.checkpoint.step = std::stoll(world_.group.broadcast_on_host(std::to_string(point.checkpoint.step), 0));
  check_sample_shape(*point.checkpoint.about, world_.train_set.shape(), point.from);
  std::vector<std::string> remarks = {
      check_cpu_level(*point.checkpoint.about, world_.device, config_.reproducible, point.from)};
  check_computation(*point.checkpoint.about, computation(), point.from);
  TrainingState state = from_checkpoint(std::move(point.checkpoint), point.from);
  remove_averaged_statistics(state.replica.state, nn::buffers_of(replica_.model()));
  if (!state.precision.empty() || !replica_.step().scales_loss())
    replica_.step().resume_loss_scale(state.replica.step, state.precision == precision_name(kernels::DType::f16));
  progress_ = state.progress;
  const JsonValue order = order_of_samples(world_, config_);
  const OrderCheck check{.progress = progress_,
                         .saved = state.order,
                         .here = order,
                         .sampler = *sampler_,
                         .samples_of_step = sizes_.global,
                         .from = point.from,
                         .saved_data = state.data,
                         .data = world_.data};
  if (state.dataset) check_classes(*state.dataset, facts_.class_names, facts_.name, point.from);
  remarks.push_back(check_samples(check));
  check_split(state.order, order, point.from);
  const bool may_have_changed = state.data.empty() && normalizes_by_data(config_) && check.needs_same_samples();
  if (state.dataset) check_dataset(*state.dataset, facts_, !may_have_changed, point.from);
  check_order(check);
  replica_.load(state.replica, point.from, world_.group.after_collectives());
  enqueued_ = saved_ = collected_ = progress_.steps;
  gradient_scale_.reset();
  times_ = {};
  epoch_ = progress_.epoch;
  return remarks;
}

void Trainer::begin_new() {
  const std::vector<nn::Parameter>& parameters = replica_.parameters();
  if (!std::ranges::count(parameters, nn::Init::whitening, &nn::Parameter::init)) return;
  std::map<std::size_t, std::vector<float>> whitened;  // of rank 0, whose weights count
  if (world_.group.rank() == 0)
    whitened = whitened_parameters(parameters, world_.train_set, data::normalize_spec(facts_));
  replica_.initialize_weights(config_.seed, whitened, world_.group.after_collectives());
}

std::vector<std::string> Trainer::begin_with(FirstWeights weights) {
  const Deadline deadline = world_.group.after_collectives();
  const ParameterNames names(replica_.model());
  std::vector<std::string> remarks = names.rename(weights.tensors, weights.from);
  if (!config_.reinit.empty()) {
    begin_new();  // a whitening layer has its filters again
    const ReplicaState fresh = replica_.save(deadline);
    reinitialize(weights.tensors, comma_separated(config_.reinit), fresh.model);
  }
  if (world_.group.rank() == 0) check_shapes(replica_.model(), weights);
  ReplicaState state{.model = std::move(weights.tensors), .state = {}, .step = replica_.step().state(deadline)};
  std::string applied;  // steps of the optimizer; empty: a new one
  if (weights.optimizer) {
    names.rename(*weights.optimizer);
    SteppedOptimizer stepped =
        from_torch_optimizer(*weights.optimizer, replica_.groups(), replica_.parameters(), weights.optimizer_from);
    check_optimizer_values(stepped.state, weights.optimizer_from);
    applied = std::to_string(stepped.applied_steps);
    state.state = std::move(stepped.state);
    if (config_.optimizer.ema > 0) begin_average(state, nn::buffers_of(replica_.model()));
  }
  applied = world_.group.broadcast_on_host(applied, 0);
  if (applied.empty()) {
    replica_.load_weights(state.model, weights.from, deadline);
    return remarks;
  }
  progress_.imported_steps = state.step.applied_steps = std::stoi(applied);
  replica_.load(state, weights.from, deadline);
  return remarks;
}

}  // namespace gradring::train
