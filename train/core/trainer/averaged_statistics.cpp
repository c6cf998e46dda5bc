// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/averaged_statistics.h"

#include <algorithm>
#include <cstring>

#include "data/loader/sampler.h"
#include "train/core/input_pipeline/batch_loader.h"
#include "train/core/optim/optimizer.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/parameter_tensors.h"

namespace gradring::train {
namespace {

std::string averaged_name(const std::string& buffer) { return std::string(kEmaState) + "." + buffer; }

/// By how much a batch moves each buffer of the model, in the order of nn::buffers_of.
std::vector<float> momenta_of(const nn::Model& model) {
  std::vector<float> momenta;
  for (const nn::NamedLayer& named : model.layers)
    if (const auto* layer = std::get_if<nn::BatchNorm2d>(&named.layer))
      momenta.insert(momenta.end(), 2, layer->momentum);
  return momenta;
}

}  // namespace

void AveragedStatistics::compute(const nn::Weights& averaged) {
  ModelBuffers& buffers = replica_.buffers();
  const std::int64_t share = parts_.train_set.size() / parts_.group.world_size();
  const std::int64_t size = std::min({replica_.training_program().max_batch(), kEvalBatch, share});
  forget();
  if (buffers.tensors().empty() || size == 0) return;
  const Deadline deadline = parts_.group.after_collectives();
  kernels::Buffer own = buffers.on_host(deadline);
  std::vector<double> sums(own.size() / sizeof(float));
  const std::int64_t batches = share / size;
  add_batches(averaged, sums, batches, size);
  parts_.group.all_reduce_on_host(sums);
  buffers.set(own, deadline);
  const double count = static_cast<double>(batches) * parts_.group.world_size();
  std::ranges::transform(sums, own.as<float>(), [&](double sum) { return static_cast<float>(sum / count); });
  values_ = std::move(own);
}

/// A batch moves buffers that are 0 to its statistics times their momentum.
void AveragedStatistics::add_batches(const nn::Weights& weights, std::vector<double>& sums, std::int64_t batches,
                                     std::int64_t size) {
  ModelBuffers& buffers = replica_.buffers();
  kernels::Stream& stream = replica_.stream();
  const std::vector<float> momenta = momenta_of(replica_.model());
  check(momenta.size() == buffers.tensors().size(), "the model has buffers that are no statistics of batches");
  const auto sampler = data::make_distributed_steps({.samples = parts_.train_set.size(),
                                                     .rank = parts_.group.rank(),
                                                     .world_size = parts_.group.world_size(),
                                                     .samples_of_step = size * parts_.group.world_size()});
  std::vector<std::int64_t> order = sampler->order(0);
  order.resize(static_cast<std::size_t>(batches * size));
  HostBatchLoader loader({.dataset = parts_.train_set,
                          .device = replica_.memory().on(MemoryClass::batches),
                          .kernels = parts_.kernels,
                          .batch_size = size,
                          .dtype = replica_.training_program().dtype(),
                          .normalize = parts_.normalize});
  loader.begin_epoch(stream, 0, std::move(order), 0);
  nn::NoObserver no_observer;
  while (const auto batch = loader.next(Deadline::after(parts_.group.timeout()))) {
    buffers.clear();
    loader.enqueue_copies(stream);
    loader.enqueue_preparation(stream, batch->count);
    replica_.training_program().enqueue_forward(stream, weights, {.x = loader.images(), .samples = batch->count},
                                                no_observer);
    const kernels::Buffer moved = buffers.on_host(parts_.group.after_collectives());
    const nn::Arena arena = buffers.arena(moved);
    for (std::size_t i = 0; i < momenta.size(); ++i) {
      if (momenta[i] == 0) continue;
      const float* values = arena.parameter(static_cast<int>(i));
      double* sum = sums.data() + (values - moved.as<float>());
      for (std::int64_t c = 0; c < buffers.tensors()[i].shape.elements(); ++c) sum[c] += values[c] / momenta[i];
    }
  }
}

void AveragedStatistics::exchange() {
  if (values_.size() == 0) return;
  const Deadline deadline = parts_.group.after_collectives();
  kernels::Buffer own = replica_.buffers().on_host(deadline);
  replica_.buffers().set(values_, deadline);
  values_ = std::move(own);
}

std::vector<TensorRecord> AveragedStatistics::records() const {
  if (values_.size() == 0 || parts_.group.rank() != 0) return {};
  const ModelBuffers& buffers = replica_.buffers();
  std::vector<TensorRecord> records = save_parameters(buffers.tensors(), buffers.arena(values_));
  for (TensorRecord& record : records) record.name = averaged_name(record.name);
  return records;
}

void remove_averaged_statistics(std::vector<TensorRecord>& state, std::span<const nn::Parameter> buffers) {
  for (const nn::Parameter& buffer : buffers)
    std::erase_if(state,
                  [name = averaged_name(buffer.name)](const TensorRecord& tensor) { return tensor.name == name; });
}

}  // namespace gradring::train
