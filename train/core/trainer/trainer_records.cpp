// SPDX-License-Identifier: Apache-2.0
// What a trainer tells about its run: header, summary, times of the ranks, values of the parameters.
#include <algorithm>
#include <limits>
#include <string>

#include "train/core/trainer/memory_plan.h"
#include "train/core/trainer/parameter_tensors.h"
#include "train/core/trainer/trainer.h"

namespace gradring::train {
namespace {

constexpr std::size_t kNumbers = 5;  // of a rank, in RankTimes

/// The groups of a training's parameters; none if all are trained alike. `peak` is the learning rate of parameters in no
/// group.
std::vector<GroupRecord> group_records(std::span<const nn::Parameter> parameters, const ParameterGroups& groups,
                                       const OptimizerSpec& spec, double peak) {
  std::vector<GroupRecord> records;
  for (std::size_t group = 0; group < groups.groups.size(); ++group) {
    const ParameterGroup& options = groups.groups[group];
    GroupRecord record{.optimizer = std::string(word_of(options.options.kind)),
                       .learning_rate = options.learning_rate.value_or(peak),
                       .weight_decay = options.options.weight_decay,
                       .frozen = options.frozen};
    if (options.epochs > 0) record.epochs = options.epochs;
    std::vector<bool> matched(spec.groups.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (groups.of_parameter[i] != static_cast<int>(group)) continue;
      ++record.tensors;
      record.parameters += parameters[i].shape.elements();
      for (std::size_t p = 0; p < matched.size(); ++p)
        if (matches(spec.groups[p].pattern, parameters[i].name)) matched[p] = true;
    }
    for (std::size_t p = 0; p < matched.size(); ++p)
      if (matched[p] && std::ranges::find(record.patterns, spec.groups[p].pattern) == record.patterns.end())
        record.patterns.push_back(spec.groups[p].pattern);
    if (record.tensors > 0) records.push_back(std::move(record));
  }
  if (records.size() == 1 && !records.front().frozen && records.front().patterns.empty()) records.clear();
  return records;
}

}  // namespace

void RankTimes::add(const StepRecord& record) {
  const auto whole = [](std::chrono::duration<double> time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time);
  };
  ++steps_;
  total_ += whole(record.duration);
  data_wait_ += whole(record.data_wait);
  exposed_communication_ += whole(record.exposed_communication);
}

void RankTimes::append_to(std::vector<std::int64_t>& sums, const comm::ProcessGroup& group,
                          std::size_t memory_bytes) const {
  const std::size_t mine = sums.size() + kNumbers * static_cast<std::size_t>(group.rank());
  sums.resize(sums.size() + kNumbers * static_cast<std::size_t>(group.world_size()));
  std::ranges::copy(
      std::to_array<std::int64_t>({steps_, total_.count(), data_wait_.count(), exposed_communication_.count(),
                                   static_cast<std::int64_t>(memory_bytes)}),
      sums.begin() + static_cast<std::ptrdiff_t>(mine));
}

RanksRecord RankTimes::take(std::span<const std::int64_t> sums, std::int64_t step) {
  RanksRecord record{.step = step, .steps = steps_};
  for (; !sums.empty(); sums = sums.subspan(kNumbers)) {
    const auto steps = static_cast<double>(std::max<std::int64_t>(1, sums[0]));
    const auto mean = [&](std::size_t number) { return 1e-9 * static_cast<double>(sums[number]) / steps; };
    record.seconds.push_back(mean(1));
    record.data_wait.push_back(mean(2));
    record.exposed_communication.push_back(mean(3));
    record.memory.push_back(static_cast<double>(sums[4]));
  }
  *this = {};
  return record;
}

/// Does not plan the programs again: a GPU's backend takes long for that.
MemoryTable Trainer::planned_memory() const {
  return plan_memory(memory_plan_spec(config_, world_.device, world_.train_set, world_.group.world_size()),
                     {.device = world_.device,
                      .kernels = world_.kernels,
                      .backend = world_.backend,
                      .train_set = world_.train_set,
                      .evaluated = evaluator_.selecting()},
                     {replica_.program().memory(), evaluator_.memory(),
                      slots_for(replica_.layout(), replica_.program()), replica_.statistics_bytes()});
}

void Trainer::describe(RunHeader& header) const {
  header.precision = precision_name(replica_.program().dtype());
  header.model = replica_.model().name;
  for (int i = 0; i < replica_.layout().parameters(); ++i)
    header.parameters += static_cast<std::int64_t>(replica_.layout().parameter(i).elements);
  header.groups = group_records(replica_.parameters(), replica_.groups(), config_.optimizer, config_.learning_rate);
  header.dataset = config_.dataset;
  header.train_samples = world_.train_set.size();
  if (world_.validation_set) header.validation_samples = world_.validation_set->size();
  header.test_samples = world_.test_set.size();
  header.ranks = world_.group.world_size();
  header.global_batch = sizes_.global;
  header.steps_per_epoch = sampler_->steps();
  header.total_steps = planned_steps();
  header.resumed_from = progress_.steps;
  header.planned_memory = planned_memory();
}

Summary Trainer::summary_of(const ModelEvaluation& selected, const ModelEvaluation& at_end,
                            const Sha256& weights) const {
  const bool validates = selected.split == kValidationSplit;
  return {.accuracy = at_end.weights.accuracy,
          .loss = at_end.weights.loss,
          .top5_accuracy = top5_accuracy(at_end.weights),
          .ema_accuracy = at_end.averaged ? std::optional(at_end.averaged->accuracy) : std::nullopt,
          .tta_accuracy = at_end.weights_tta ? std::optional(at_end.weights_tta->accuracy) : std::nullopt,
          .ema_tta_accuracy = at_end.averaged_tta ? std::optional(at_end.averaged_tta->accuracy) : std::nullopt,
          .validation_accuracy = validates ? std::optional(selected.weights.accuracy) : std::nullopt,
          .validation_loss = validates ? std::optional(selected.weights.loss) : std::nullopt,
          .classes = class_results(at_end.weights.classes, world_.test_set.class_names()),
          .validation_classes = validates
                                    ? class_results(selected.weights.classes, world_.validation_set->class_names())
                                    : std::vector<ClassResult>(),
          .train_loss = progress_.epoch_samples > 0
                            ? progress_.epoch_loss_sum / static_cast<double>(progress_.epoch_samples)
                            : std::numeric_limits<double>::quiet_NaN(),
          .steps = progress_.steps,
          .seconds = progress_.seconds,
          .samples_per_second = progress_.seconds > 0 ? static_cast<double>(progress_.samples) / progress_.seconds : 0,
          .world_size = world_.group.world_size(),
          .device = shown_device(world_.device.id().to_string(), config_.simulate_gpu),
          .backend = std::string(world_.backend.name()),
          .precision = precision_name(replica_.program().dtype()),
          .parameters_sha256 = to_hex(weights),
          .planned_memory = planned_memory(),
          .peak_memory = replica_.memory().peaks(),
          .further_device_bytes = replica_.memory_of_others().total()};
}

void Trainer::report_parameters() {
  const bool leads = world_.group.rank() == 0;
  if (!shows_parameters(config_) || (!leads && config_.zero == 0)) return;  // sharded state is gathered from all ranks
  const Deadline deadline = world_.group.after_collectives();
  const auto values_of = [&](const nn::Arena& host, double factor) {
    return leads ? named_values(replica_.parameters(), host, static_cast<float>(factor))
                 : std::vector<ParameterValues>();
  };
  ParameterSnapshot snapshot{.step = progress_.steps};
  // Before the weights, which may overwrite them.
  if (gradient_scale_) {
    const kernels::Buffer gradients = replica_.gradients_on_host(deadline);
    snapshot.gradients = values_of({replica_.layout(), gradients.as<float>()}, 1 / *gradient_scale_);
  }
  const kernels::Buffer weights = replica_.weights_on_host(deadline);
  snapshot.weights = values_of(nn::weights_arena(replica_.layout(), weights.as<float>()), 1);
  weights_gathered();
  if (leads) world_.metrics.parameters(snapshot);
}

}  // namespace gradring::train
