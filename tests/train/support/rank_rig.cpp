// SPDX-License-Identifier: Apache-2.0
#include "tests/train/support/rank_rig.h"

#include "data/datasets/dataset.h"
#include "tests/comm/support/ranks.h"
#include "tests/nn/support/program_rig.h"
#include "tests/support/safetensors.h"
#include "train/core/input_pipeline/batch_loader.h"

namespace gradring::tests {
namespace {

Deadline soon() { return Deadline::after(std::chrono::minutes(2)); }

}  // namespace

struct RankRig::Parts {
  const data::Dataset& dataset;
  kernels::HostDevice own_device;
  kernels::Device& device;
  std::unique_ptr<nn::Backend> backend;
  std::vector<std::unique_ptr<kernels::HostDevice>> further;
  std::vector<std::unique_ptr<nn::Backend>> further_backends;
  std::vector<train::FurtherDevice> others;
  kernels::KernelSet kernels = kernels::kernel_set();
  std::int64_t max_batch;
  train::Replica replica;
  train::CopiedBatch batch;

  const std::vector<train::FurtherDevice>& make_others(const Options& options) {
    for (int i = 1; i < options.devices; ++i) {
      further.push_back(std::make_unique<kernels::HostDevice>());
      further_backends.push_back(make_backend(options.backend, *further.back()));
      others.push_back({.device = *further.back(), .backend = *further_backends.back()});
    }
    return others;
  }

  /// With a constant rate of each group, if there are any.
  static train::StepSpec step_of(const data::Dataset& set, const Options& options) {
    train::StepSpec step{.loss_scaling = options.loss_scaling,
                         .learning_rates = options.learning_rates.empty() ? std::vector{1e-3f} : options.learning_rates,
                         .clip_norm = options.clip_norm,
                         .label_smoothing = options.label_smoothing,
                         .recorded = options.recorded};
    if (options.optimizer.groups.empty()) return step;
    const auto parameters = nn::parameters_of(nn::make_model(options.model, set.shape(), set.classes()));
    const auto groups = train::parameter_groups(parameters, options.optimizer).groups;
    step.learning_rates = train::learning_rates(groups, {}, step.learning_rates.front(), {.total = 1, .of_epoch = 1});
    step.groups = groups.size();
    return step;
  }

  Parts(comm::ProcessGroup& group, const data::Dataset& set, const Options& options)
      : dataset(set),
        device(options.device ? *options.device : own_device),
        backend(options.decorate ? options.decorate(make_backend(options.backend, device))
                                 : make_backend(options.backend, device)),
        max_batch(options.max_batch),
        replica({.model = options.model,
                 .batch_size = options.max_batch,
                 .precision = options.precision,
                 .checkpointing = options.checkpointing,
                 .step = step_of(set, options),
                 .optimizer = options.optimizer,
                 .buckets = options.buckets,
                 .wire = options.wire,
                 .zero = options.zero,
                 .accumulates = options.accumulates,
                 .sync_every_pass = options.sync_every_pass,
                 .sync_batch_norm = options.sync_batch_norm,
                 .overlap = options.overlap,
                 .devices = options.devices,
                 .seed = options.seed},
                {.device = device,
                 .kernels = kernels,
                 .backend = *backend,
                 .group = group,
                 .sample = set.shape(),
                 .classes = set.classes(),
                 .others = make_others(options)}),
        batch({.dataset = set,
               .device = device,
               .kernels = kernels,
               .batch_size = options.max_batch,
               .dtype = options.precision}) {}

  /// Zeros for the gradients of frozen parameters.
  std::vector<std::vector<float>> in_torch_order(const nn::Arena& arena) const {
    const auto& parameters = replica.parameters();
    std::vector<std::vector<float>> all;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      all.emplace_back(static_cast<std::size_t>(parameters[i].shape.elements()));
      if (!arena.has(static_cast<int>(i))) continue;
      nn::to_torch_order(parameters[i], {arena.parameter(static_cast<int>(i)), all.back().size()}, all.back());
    }
    return all;
  }
};

RankRig::RankRig(comm::ProcessGroup& group, const data::Dataset& dataset, const Options& options)
    : parts_(std::make_unique<Parts>(group, dataset, options)) {}

RankRig::~RankRig() = default;

train::StepResult RankRig::step(const std::vector<std::int64_t>& indices, std::int64_t global_samples) {
  train::TrainStep& step = parts_->replica.step();
  if (indices.empty()) return step.run({.batch = parts_->batch, .global_samples = global_samples}, soon());
  data::Loader loader(parts_->dataset, parts_->device, {.indices = indices, .batch_size = parts_->max_batch});
  const Deadline deadline = soon();
  const std::int64_t batches = loader.geometry().steps();
  for (std::int64_t i = 0; i < batches; ++i) {
    const auto batch = loader.next(deadline);
    parts_->batch.set(*batch);
    step.enqueue({.batch = parts_->batch,
                  .count = batch->count(),
                  .global_samples = global_samples,
                  .pass = {.first = i == 0, .last = i + 1 == batches}});
  }
  return step.wait(deadline);
}

std::vector<std::vector<float>> RankRig::weights() const {
  const kernels::Buffer host = parts_->replica.weights_on_host(soon());
  return parts_->in_torch_order(nn::weights_arena(parts_->replica.layout(), host.as<float>()));
}
std::vector<std::vector<float>> RankRig::gradients() const {
  const kernels::Buffer host = parts_->replica.gradients_on_host(soon());
  return parts_->in_torch_order({parts_->replica.layout(), host.as<float>()});
}
train::Replica& RankRig::replica() { return parts_->replica; }
const std::vector<nn::Parameter>& RankRig::parameters() const { return parts_->replica.parameters(); }

void run_ranks(int world, const std::function<void(comm::ProcessGroup&)>& rank) {
  run_as_threads(world, rank, std::chrono::minutes(2));
}

std::unique_ptr<data::Dataset> golden_images() {
  const auto golden = tests::read_golden("convnet_step_seed0");
  const auto labels = golden.at("labels").as<std::int64_t>();
  return std::make_unique<data::InMemoryDataset>(
      data::InMemoryDataset::Contents{.name = "golden",
                                      .shape = {28, 28, 1},
                                      .classes = 10,
                                      .pixels = golden.at("images_u8").as<std::uint8_t>(),
                                      .labels = std::vector<std::int32_t>(labels.begin(), labels.end())});
}

}  // namespace gradring::tests
