// SPDX-License-Identifier: Apache-2.0
#include "train/core/inference/inference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/lib/variant.h"
#include "train/core/config/train_config.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/parameter_names.h"
#include "train/core/trainer/parameter_tensors.h"

namespace gradring::train {
namespace {

nn::ArenaLayout one_bucket(const std::vector<nn::Parameter>& parameters) {
  std::vector<int> all(parameters.size());
  std::iota(all.begin(), all.end(), 0);
  return {parameters, std::vector<std::vector<int>>{all}, 1};
}

}  // namespace

Inference::Inference(const InferenceSpec& spec, std::vector<TensorRecord> weights, const std::filesystem::path& from,
                     const Compute& compute)
    : from_(from),
      normalize_(spec.normalize),
      compute_(compute),
      self_(make_group({}, {.timeout = default_timeout(compute.simulated)}, &compute)),
      model_(nn::make_model(spec.model, spec.sample, spec.classes)),
      parameters_(nn::parameters_of(model_)),
      layout_(one_bucket(parameters_)),
      shards_(layout_, 1, 0),
      stream_(compute.device->make_stream(kernels::StreamMode::in_place)),
      buffers_(model_, {.device = *compute.device, .group = *self_.group, .stream = *stream_}),
      weights_({.device = *compute.device,
                .group = *self_.group,
                .shards = shards_,
                .cast = kernels::pick_variant(compute.kernels.cast, *compute.device, spec.precision),
                .buffers = buffers_.data()},
               spec.precision),
      program_(model_, spec.batch_size, nn::ProgramMode::evaluation, *compute.backend, *compute.device,
               spec.precision) {
  load(std::move(weights));
}

void Inference::load(std::vector<TensorRecord> weights) {
  remarks_ = ParameterNames(model_).rename(weights, from_);
  const kernels::Buffer host =
      compute_.device->allocate(layout_.elements() * sizeof(float), kernels::MemoryKind::pinned);
  std::fill_n(host.as<float>(), layout_.elements(), 0.0f);
  const Deadline deadline = Deadline::after(self_.group->timeout());
  const SplitRecords split = split_records(weights, buffers_.tensors());
  load_parameters(split.first, from_, parameters_, {layout_, host.as<float>()});
  check_finite_weights(weights, from_);
  buffers_.load(split.others, from_, deadline);
  stream_->enqueue_copy(weights_.master().front(), host.data(), host.size());
  weights_.enqueue_refresh(*stream_);
  stream_->synchronize(deadline);
}

Inference::Result Inference::run(const data::Dataset& dataset, Tta tta) {
  Result result;
  result.evaluation = evaluate({.device = *compute_.device,
                                .stream = *stream_,
                                .kernels = compute_.kernels,
                                .group = *self_.group,
                                .program = program_,
                                .weights = weights_.view(),
                                .dataset = dataset,
                                .normalize = normalize_,
                                .tta = tta,
                                .batch_done = [&](std::span<const double> logits) {
                                  result.logits.insert(result.logits.end(), logits.begin(), logits.end());
                                }});
  check_simulation(compute_);
  check_finite_outputs(result.logits, static_cast<std::size_t>(model_.classes), from_,
                       precision_name(program_.dtype()));
  return result;
}

std::vector<double> probabilities_of(std::span<const float> logits) {
  const double most = *std::ranges::max_element(logits);
  std::vector<double> probabilities;
  for (const float logit : logits) probabilities.push_back(std::exp(logit - most));
  const double sum = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

}  // namespace gradring::train
