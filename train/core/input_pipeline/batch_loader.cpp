// SPDX-License-Identifier: Apache-2.0
#include "train/core/input_pipeline/batch_loader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/lib/variant.h"

namespace gradring::train {
namespace {

/// Host batches that exist at once, and how many of them may await their copy: the loader fills the rest.
constexpr int kDepth = 4;
constexpr std::size_t kMostInFlight = 2;

using kernels::MemoryKind;

std::size_t bytes_of(std::int64_t elements, std::size_t element_bytes) {
  return static_cast<std::size_t>(elements) * element_bytes;
}

}  // namespace

CopiedBatch::CopiedBatch(const BatchLoaderSpec& spec)
    : dtype_(spec.keeps_f32 ? kernels::DType::f32 : spec.dtype),
      sample_elements_(static_cast<std::size_t>(spec.dataset.shape().elements())),
      cast_(kernels::pick_variant(spec.kernels.cast, spec.device, dtype_)) {
  const auto samples = static_cast<std::size_t>(spec.batch_size);
  images_ = spec.device.allocate(samples * sample_elements_ * sizeof(float));
  if (rounds()) rounded_ = spec.device.allocate(samples * sample_elements_ * kernels::size_of(dtype_));
  labels_ = spec.device.allocate(samples * sizeof(std::int32_t));
  if (!spec.augment.mixes()) return;
  labels_b_ = spec.device.allocate(samples * sizeof(std::int32_t));
  weights_b_ = spec.device.allocate(samples * sizeof(float));
}

void CopiedBatch::enqueue_copies(kernels::Stream& stream) {
  enqueue_images(stream, batch_->images());
  stream.enqueue_copy(labels_.data(), batch_->labels().data(), batch_->labels().size_bytes());
  if (labels_b_.size() == 0) return;
  stream.enqueue_copy(labels_b_.data(), batch_->labels_b().data(), batch_->labels_b().size_bytes());
  stream.enqueue_copy(weights_b_.data(), batch_->weights_b().data(), batch_->weights_b().size_bytes());
}

void CopiedBatch::enqueue_images(kernels::Stream& stream, std::span<const float> images) {
  stream.enqueue_copy(images_.data(), images.data(), images.size_bytes());
}

void CopiedBatch::enqueue_preparation(kernels::Stream& stream, std::int64_t count) {
  if (!rounds()) return;
  cast_.run(stream, {.from = kernels::DType::f32,
                     .to = dtype_,
                     .x = images_.data(),
                     .y = rounded_.data(),
                     .elements = static_cast<std::size_t>(count) * sample_elements_});
}

void HostBatchLoader::begin_epoch(kernels::Stream&, Epoch epoch) {
  check_position(epoch);
  in_flight_.clear();
  epoch.order.erase(epoch.order.begin(), epoch.order.begin() + epoch.position);
  first_ = epoch.position;
  loader_.reset();  // the old thread and the new one must not add to the trace, or read visits_, at once
  visits_ = std::move(epoch.visits);
  loader_ = std::make_unique<data::Loader>(spec_.dataset, spec_.device,
                                           data::LoaderSpec{.indices = std::move(epoch.order),
                                                            .batch_size = spec_.batch_size,
                                                            .window = spec_.window,
                                                            .normalize = spec_.normalize,
                                                            .augmentation = {.what = spec_.augment,
                                                                             .seed = spec_.augment_seed,
                                                                             .epoch = epoch.number,
                                                                             .lambdas = lambdas_,
                                                                             .visits = visits_},
                                                            .threads = spec_.threads,
                                                            .depth = kDepth,
                                                            .trace = spec_.trace});
}

std::optional<BatchLoader::Next> HostBatchLoader::next(Deadline deadline) {
  release_copied(kMostInFlight, deadline);
  std::optional<data::Batch> batch = loader_->next(deadline);
  if (!batch) return std::nullopt;
  const Next next{.position = first_ + batch->position(), .count = batch->count(), .data_wait = batch->data_wait()};
  in_flight_.push_back({std::move(*batch), spec_.device.make_event()});
  return next;
}

void HostBatchLoader::enqueue_copies(kernels::Stream& stream) {
  batch_.set(in_flight_.back().batch);
  batch_.enqueue_copies(stream);
  stream.record(*in_flight_.back().copied);
}

void HostBatchLoader::release_copied(std::size_t at_most, Deadline deadline) {
  while (!in_flight_.empty() && in_flight_.front().copied->reached()) in_flight_.pop_front();
  while (in_flight_.size() > at_most) {
    kernels::wait(*in_flight_.front().copied, deadline);
    in_flight_.pop_front();
  }
}

ResidentBatchLoader::ResidentBatchLoader(const BatchLoaderSpec& spec, kernels::Stream& stream, Deadline deadline)
    : dtype_(spec.dtype),
      gather_(kernels::pick_variant(spec.kernels.gather_batch, spec.device, spec.dtype)),
      samples_(spec.dataset.size()),
      sample_elements_(spec.dataset.shape().elements()),
      channels_(spec.dataset.shape()[2]),
      width_(spec.dataset.shape()[1]),
      augment_(spec.augment),
      augment_seed_(spec.augment_seed),
      geometry_{.samples = 0, .batch_size = spec.batch_size, .window = spec.window},
      pixels_(spec.device.allocate(bytes_of(samples_ * sample_elements_, 1))),
      pixel_labels_(spec.device.allocate(bytes_of(samples_, sizeof(std::int32_t)))),
      statistics_(spec.device.allocate(bytes_of(2 * channels_, sizeof(float)))),
      order_(spec.device.allocate(bytes_of(samples_, sizeof(std::int64_t)))),
      first_(spec.device.allocate(sizeof(std::int64_t))),
      epoch_(spec.device.allocate(sizeof(std::int64_t))),
      arrivals_(spec.device.allocate(sizeof(unsigned))),
      host_order_(spec.device.allocate(bytes_of(samples_ + 2, sizeof(std::int64_t)), MemoryKind::pinned)),
      images_(spec.device.allocate(bytes_of(spec.batch_size * sample_elements_, kernels::size_of(spec.dtype)))),
      labels_(spec.device.allocate(bytes_of(spec.batch_size, sizeof(std::int32_t)))) {
  (void)data::Normalize(spec.normalize, channels_);  // checks the spec
  data::check_fits(augment_, spec.dataset.shape());
  const kernels::Buffer host = spec.device.allocate(statistics_.size(), MemoryKind::pinned);
  std::ranges::copy(data::for_channels(spec.normalize.mean, channels_), host.as<float>());
  std::ranges::copy(data::for_channels(spec.normalize.std, channels_), host.as<float>() + channels_);
  stream.enqueue_copy(statistics_.data(), host.data(), host.size());
  stream.enqueue_zero(arrivals_.data(), arrivals_.size());
  upload(spec.dataset, stream, deadline);
  stream.synchronize(deadline);
  if (augment_.mixes()) prepare_mixtures(spec, stream, deadline);
}

void ResidentBatchLoader::prepare_mixtures(const BatchLoaderSpec& spec, kernels::Stream& stream, Deadline deadline) {
  const std::vector<std::int32_t> lambdas = data::lambdas_of(augment_);
  lambdas_ = spec.device.allocate(std::span(lambdas).size_bytes());
  labels_b_ = spec.device.allocate(bytes_of(spec.batch_size, sizeof(std::int32_t)));
  weights_b_ = spec.device.allocate(bytes_of(spec.batch_size, sizeof(float)));
  if (spec.repeats_samples) {
    visits_ = spec.device.allocate(bytes_of(samples_, sizeof(std::int64_t)));
    host_visits_ = spec.device.allocate(visits_.size(), MemoryKind::pinned);
  }
  stream.enqueue_copy(lambdas_.data(), lambdas.data(), lambdas_.size());
  stream.synchronize(deadline);
}

/// Copies in parts, so that the host holds no second copy of the data set.
void ResidentBatchLoader::upload(const data::Dataset& dataset, kernels::Stream& stream, Deadline deadline) {
  constexpr std::int64_t kSamplesAtOnce = 4096;
  std::vector<std::byte> part(bytes_of(std::min(kSamplesAtOnce, samples_) * sample_elements_, 1));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(samples_));
  for (std::int64_t begin = 0; begin < samples_; begin += kSamplesAtOnce) {
    const std::int64_t end = std::min(begin + kSamplesAtOnce, samples_);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto pixels = dataset.pixels(i);
      std::memcpy(part.data() + bytes_of((i - begin) * sample_elements_, 1), pixels.data(), pixels.size());
      labels[static_cast<std::size_t>(i)] = dataset.label(i);
    }
    stream.enqueue_copy(pixels_.data() + bytes_of(begin * sample_elements_, 1), part.data(),
                        bytes_of((end - begin) * sample_elements_, 1));
    stream.synchronize(deadline);  // before `part` is overwritten
  }
  stream.enqueue_copy(pixel_labels_.data(), labels.data(), pixel_labels_.size());
  stream.synchronize(deadline);
}

void ResidentBatchLoader::begin_epoch(kernels::Stream& stream, Epoch epoch) {
  check_position(epoch);
  check(std::ssize(epoch.order) <= samples_, "an epoch's order has more samples than the data set");
  check(visits_.size() == std::span(epoch.visits).size_bytes(),
        "an epoch of mixtures has not as many visits as samples");
  geometry_.samples = std::ssize(epoch.order) - epoch.position;
  first_position_ = epoch.position;
  batch_ = 0;
  auto* host = host_order_.as<std::int64_t>();
  std::ranges::copy(epoch.order, host);
  host[samples_] = epoch.position;
  host[samples_ + 1] = epoch.number;
  std::ranges::copy(epoch.visits, host_visits_.as<std::int64_t>());
  if (visits_.size() > 0) stream.enqueue_copy(visits_.data(), host_visits_.data(), visits_.size());
  stream.enqueue_copy(order_.data(), host, epoch.order.size() * sizeof(std::int64_t));
  stream.enqueue_copy(first_.data(), host + samples_, sizeof(std::int64_t));
  stream.enqueue_copy(epoch_.data(), host + samples_ + 1, sizeof(std::int64_t));
}

std::optional<BatchLoader::Next> ResidentBatchLoader::next(Deadline) {
  if (batch_ == geometry_.steps()) return std::nullopt;
  const std::int64_t begin = geometry_.begin(batch_), end = geometry_.end(batch_);
  ++batch_;
  return Next{.position = first_position_ + begin, .count = end - begin};
}

void ResidentBatchLoader::enqueue_preparation(kernels::Stream& stream, std::int64_t count) {
  gather_.run(stream, {.dtype = dtype_,
                       .samples = samples_,
                       .positions = samples_,
                       .batch = count,
                       .elements = sample_elements_,
                       .channels = channels_,
                       .x = pixels_.as<std::uint8_t>(),
                       .x_labels = pixel_labels_.as<std::int32_t>(),
                       .order = order_.as<std::int64_t>(),
                       .first = first_.as<std::int64_t>(),
                       .mean = statistics_.as<float>(),
                       .std = statistics_.as<float>() + channels_,
                       .y = images_.data(),
                       .labels = labels_.as<std::int32_t>(),
                       .augment = augment_,
                       .width = width_,
                       .seed = augment_seed_,
                       .epoch = epoch_.as<std::int64_t>(),
                       .lambdas = lambdas_.as<std::int32_t>(),
                       .labels_b = labels_b_.as<std::int32_t>(),
                       .weights_b = weights_b_.as<float>(),
                       .visits = visits_.as<std::int64_t>(),
                       .arrivals = arrivals_.as<unsigned>()});
}

}  // namespace gradring::train
