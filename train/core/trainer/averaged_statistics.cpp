// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/averaged_statistics.h"

#include <algorithm>
#include <functional>
#include <span>

#include "train/core/input_pipeline/batch_loader.h"
#include "train/core/optim/optimizer.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/parameter_tensors.h"

namespace gradring::train {
namespace {

std::string averaged_name(const std::string& buffer) { return std::string(kEmaState) + "." + buffer; }

}  // namespace

/// Deals the samples of each batch. With --reproducible a batch is a step's micro-batch, which does not depend on the
/// number of ranks; otherwise each rank has equally many samples.
std::unique_ptr<data::StepSampler> AveragedStatistics::make_batches() const {
  data::StepSamplerSpec spec{
      .samples = parts_.train_set.size(), .rank = parts_.group.rank(), .world_size = parts_.group.world_size()};
  if (parts_.micro_batch > 0) {
    spec.samples_of_step = parts_.micro_batch;
    return data::make_sharded_steps(spec, {.samples = parts_.shard});
  }
  const std::int64_t share = spec.samples / spec.world_size;
  const std::int64_t size = std::min({replica_.training_program().max_batch(), kEvalBatch, share});
  spec.samples_of_step = size * spec.world_size;
  return size > 0 ? data::make_distributed_steps(spec) : nullptr;
}

void AveragedStatistics::compute(const nn::Weights& averaged) {
  ModelBuffers& buffers = replica_.buffers();
  const std::unique_ptr<data::StepSampler> sampler = make_batches();
  forget();
  if (buffers.tensors().empty() || !sampler) return;
  const Deadline deadline = parts_.group.after_collectives();
  kernels::Buffer own = buffers.on_host(deadline);
  std::vector<double> sums(own.size() / sizeof(float));
  const std::int64_t batches = std::max<std::int64_t>(1, parts_.train_set.size() / sampler->samples_of_step());
  add_batches(averaged, sums, *sampler, batches);
  buffers.set(own, deadline);
  auto count = static_cast<double>(batches);
  if (parts_.micro_batch == 0) {  // else all ranks have the sums of whole batches
    parts_.group.all_reduce_on_host(sums);
    count *= parts_.group.world_size();
  }
  std::ranges::transform(sums, own.as<float>(), [&](double sum) { return static_cast<float>(sum / count); });
  values_ = std::move(own);
}

void AveragedStatistics::add_batches(const nn::Weights& weights, std::vector<double>& sums,
                                     const data::StepSampler& sampler, std::int64_t batches) {
  ModelBuffers& buffers = replica_.buffers();
  kernels::Stream& stream = replica_.stream();
  std::vector<std::int64_t> order = sampler.order(0);
  order.resize(static_cast<std::size_t>(sampler.step(batches - 1).end));
  HostBatchLoader loader({.dataset = parts_.train_set,
                          .device = replica_.memory().on(MemoryClass::batches),
                          .kernels = parts_.kernels,
                          .batch_size = sampler.most_of_rank(),
                          .window = sampler.micro_batch_of_rank(),
                          .dtype = replica_.training_program().dtype(),
                          .normalize = parts_.normalize});
  loader.begin_epoch(stream, {.order = std::move(order)});
  nn::NoObserver no_observer;
  for (std::int64_t i = 0; i < batches; ++i) {
    const data::StepShare share = sampler.step(i);
    buffers.clear();
    if (share.end > share.begin) {
      check(loader.next(Deadline::after(parts_.group.timeout())).has_value(), "the training set ended early");
      loader.enqueue_copies(stream);
      loader.enqueue_preparation(stream, share.end - share.begin);
    }
    replica_.training_program().enqueue_forward(
        stream, weights,
        {.x = loader.images(),
         .samples = share.end - share.begin,
         .random = replica_.step().random_key(share.position + share.first, share.stride),
         .overwrites_buffers = true},
        no_observer);
    const kernels::Buffer found = buffers.on_host(parts_.group.after_collectives());
    std::ranges::transform(sums, std::span(found.as<float>(), sums.size()), sums.begin(), std::plus<>());
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
