// SPDX-License-Identifier: Apache-2.0
#include "tests/train/support/rank_rig.h"

#include "data/datasets/in_memory_dataset.h"
#include "nn/init/torch_uniform.h"
#include "tests/comm/support/ranks.h"
#include "tests/nn/support/program_rig.h"
#include "tests/support/safetensors.h"

namespace gradring::tests {

struct RankRig::Parts {
  const data::Dataset& dataset;
  double learning_rate;
  nn::Model model;
  std::vector<nn::Parameter> parameters;
  nn::ArenaLayout layout;
  kernels::HostDevice device;
  std::unique_ptr<kernels::Stream> stream;
  std::unique_ptr<nn::Backend> backend;
  kernels::KernelSet kernels = kernels::kernel_set();
  std::vector<float> weight_memory;
  std::unique_ptr<comm::Segment> gradient_memory;
  nn::Arena weights;
  nn::Arena gradients;
  nn::Program program;
  std::unique_ptr<train::Optimizer> optimizer;
  train::DistributedDataParallel ddp;
  train::TrainStep step;

  Parts(comm::ProcessGroup& group, const data::Dataset& set, const Options& options)
      : dataset(set),
        learning_rate(options.learning_rate),
        model(nn::convnet(set.shape(), set.classes())),
        parameters(nn::parameters_of(model)),
        layout(parameters, train::make_buckets(parameters, nn::Program::ready_order(model), options.buckets),
               static_cast<std::size_t>(group.world_size()), train::TrainStep::kRiders),
        stream(device.make_stream(kernels::StreamMode::in_place)),
        backend(make_backend(options.backend, device)),
        weight_memory(layout.elements()),
        gradient_memory(group.allocate(layout.elements() * sizeof(float))),
        weights{layout, weight_memory.data()},
        gradients{layout, gradient_memory->as<float>()},
        program(model, options.max_batch, nn::ProgramMode::training, *backend, device),
        optimizer(train::make_optimizer(options.optimizer, kernels, device, layout)),
        ddp(group, *gradient_memory, layout, device, *stream),
        step({.device = device,
              .stream = *stream,
              .kernels = kernels,
              .program = program,
              .weights = weights,
              .gradients = gradients,
              .ddp = ddp,
              .optimizer = *optimizer},
             set.shape()) {
    const auto drawn = nn::draw_torch_uniform(parameters, options.seed);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      nn::from_torch_order(parameters[i], drawn[i], {weights.parameter(static_cast<int>(i)), drawn[i].size()});
    ddp.broadcast_weights(weights);
  }

  std::vector<std::vector<float>> in_torch_order(const nn::Arena& arena) const {
    std::vector<std::vector<float>> all;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      all.emplace_back(static_cast<std::size_t>(parameters[i].shape.elements()));
      nn::to_torch_order(parameters[i], {arena.parameter(static_cast<int>(i)), all.back().size()}, all.back());
    }
    return all;
  }
};

RankRig::RankRig(comm::ProcessGroup& group, const data::Dataset& dataset, const Options& options)
    : parts_(std::make_unique<Parts>(group, dataset, options)) {}

RankRig::~RankRig() = default;

double RankRig::step(const std::vector<std::int64_t>& indices, std::int64_t global_samples) {
  data::Loader loader(parts_->dataset, parts_->device,
                      {.indices = indices, .batch_size = static_cast<std::int64_t>(indices.size())});
  const Deadline deadline = Deadline::after(std::chrono::minutes(2));
  const auto batch = loader.next(deadline);
  return parts_->step.run({.batch = *batch,
                           .global_samples = global_samples,
                           .learning_rate = parts_->learning_rate,
                           .deadline = deadline});
}

std::vector<std::vector<float>> RankRig::weights() const { return parts_->in_torch_order(parts_->weights); }
std::vector<std::vector<float>> RankRig::gradients() const { return parts_->in_torch_order(parts_->gradients); }
const std::vector<nn::Parameter>& RankRig::parameters() const { return parts_->parameters; }

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
                                      .labels = std::vector<std::uint8_t>(labels.begin(), labels.end())});
}

}  // namespace gradring::tests
