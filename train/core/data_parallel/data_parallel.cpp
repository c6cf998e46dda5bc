// SPDX-License-Identifier: Apache-2.0
#include "train/core/data_parallel/data_parallel.h"

#include <algorithm>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/lib/variant.h"

namespace gradring::train {
namespace {

using kernels::DType;

/// Passes all calls of a backward on at once, but those for gradients that are ready: these wait for the gather.
class UntilGathered final : public nn::StepObserver {
 public:
  explicit UntilGathered(nn::StepObserver& next) : next_(next) {}

  void before_forward() override { next_.before_forward(); }
  void before_backward() override { next_.before_backward(); }
  void weights_needed(std::span<const int> parameters) override { next_.weights_needed(parameters); }
  void gradients_begin(std::span<const int> parameters) override { next_.gradients_begin(parameters); }
  void gradient_ready(int parameter) override { ready_.push_back(parameter); }

  void gathered() {
    for (const int parameter : ready_) next_.gradient_ready(parameter);
  }

 private:
  nn::StepObserver& next_;
  std::vector<int> ready_;
};

}  // namespace

std::int64_t samples_of_device(std::int64_t samples, std::int64_t devices) { return (samples + devices - 1) / devices; }

DataParallel::DataParallel(const DeviceReplicaSpec& spec, First first, std::span<const FurtherDevice> others)
    : first_(std::move(first)),
      sample_bytes_(static_cast<std::size_t>(spec.sample.elements()) * kernels::size_of(spec.dtype)),
      accumulate_(kernels::pick_variant(first_.kernels.accumulate, first_.device, DType::f32)),
      gathered_(first_.device.allocate(gathered_bytes(spec.layout))),
      ready_(first_.device.make_event()) {
  for (const FurtherDevice& further : others) others_.push_back(std::make_unique<DeviceReplica>(spec, further));
}

/// The devices share memory of the caller, who frees it when an error arrives: all others must be done by then.
void DataParallel::drain_on_error(const std::function<void()>& work) try { work(); } catch (...) {
  for (const auto& other : others_) other->drain();
  throw;
}

void DataParallel::enqueue_forward(kernels::Stream& stream, const nn::Weights& weights, const Batch& batch,
                                   nn::StepObserver& observer) {
  const auto devices = static_cast<std::int64_t>(others_.size()) + 1;
  chunk_ = samples_of_device(batch.samples, devices);
  active_ = static_cast<std::size_t>((batch.samples - 1) / chunk_);
  const auto part = [&](std::int64_t begin) {
    Batch samples{.x = static_cast<const std::byte*>(batch.x) + static_cast<std::size_t>(begin) * sample_bytes_,
                  .samples = std::min(chunk_, batch.samples - begin),
                  .random = batch.random};
    samples.random.first += begin * batch.random.stride;
    return samples;
  };
  drain_on_error([&] {
    stream.record(*ready_);
    std::int64_t begin = 0;
    for (const auto& other : active()) other->enqueue_forward(*ready_, weights, part(begin += chunk_));
    first_.program.enqueue_forward(stream, weights, part(0), observer);
  });
}

void DataParallel::enqueue_backward(kernels::Stream& stream, const nn::Weights& weights, const nn::Gradients& gradients,
                                    const LossTarget& target, nn::StepObserver& observer) {
  drain_on_error([&] {
    LossTarget part = target;
    for (const auto& other : active()) {
      part.labels += chunk_;
      part.soft = part.soft.from(chunk_);
      other->enqueue_backward(part);
    }
    UntilGathered all(observer);
    first_.program.enqueue_backward(stream, weights, gradients, target, all);
    first_.enqueue_exposed([&](kernels::Stream& here) {
      for (const auto& other : active()) gather(here, *other, gradients);
    });
    all.gathered();
  });
}

/// Adds the gradients and the loss of another device to those of the first.
void DataParallel::gather(kernels::Stream& stream, const DeviceReplica& from, const nn::Gradients& gradients) {
  stream.enqueue_wait(from.done());
  stream.enqueue_copy(gathered_.data(), from.gradients().data, gathered_.size());
  const nn::Arena copy{from.gradients().layout, gathered_.as<float>()};
  const auto add = [&](const float* of_other, float* sum, std::size_t elements) {
    accumulate_.run(stream, {.dtype = DType::f32, .x = of_other, .y = sum, .elements = elements});
  };
  for (int parameter = 0; parameter < copy.layout.parameters(); ++parameter)
    if (!copy.layout.is_frozen(parameter))
      add(copy.parameter(parameter), gradients.parameter(parameter), copy.layout.parameter(parameter).elements);
  add(copy.piggyback().data(), gradients.piggyback, copy.piggyback().size());
}

void DataParallel::enqueue_empty_batch(kernels::Stream& stream, const nn::Weights& weights,
                                       const nn::Gradients& gradients, nn::StepObserver& observer) {
  first_.program.enqueue_empty_batch(stream, weights, gradients, observer);
}

MemoryTable DataParallel::peak_memory() const {
  MemoryTable sum;
  for (const auto& other : others_)
    for (const MemoryClass each : all_memory_classes()) sum[each] += other->peak_memory()[each];
  return sum;
}

}  // namespace gradring::train
