// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/exact_gradients.h"

#include <algorithm>

namespace gradring::train {
namespace {

/// Of gradients without the loss scale, and of losses: 62 bits from there up are 2^18 and 2^38.
constexpr double kUnit = 0x1p-44;
constexpr double kLossUnit = 0x1p-24;

}  // namespace

ExactUnits::ExactUnits(comm::ProcessGroup& group, const nn::ArenaLayout& layout, comm::AllReduceAlgorithm algorithm)
    : group_(group),
      algorithm_(algorithm),
      buckets_({.dtype = kernels::DType::i64}, group, layout),
      totals_(group.allocate(kTotals * sizeof(std::int64_t))) {}

std::size_t ExactUnits::bytes_of(const nn::ArenaLayout& layout) {
  return BucketMemory::bytes_of({.dtype = kernels::DType::i64}, layout) + kTotals * sizeof(std::int64_t);
}

void ExactUnits::enqueue_clear(kernels::Stream& stream) {
  stream.enqueue_zero(buckets_.data(0), buckets_.bytes());
  stream.enqueue_zero(totals_->data(), totals_->size());
}

void ExactUnits::enqueue_sum(int bucket, kernels::Stream& stream) {
  group_.all_reduce(buckets_.range(bucket), stream, algorithm_);
  if (bucket + 1 == buckets_.layout().buckets())
    group_.all_reduce({.segment = totals_.get(), .slice = {0, kTotals}, .dtype = kernels::DType::i64}, stream,
                      algorithm_);
}

ExactGradients::ExactGradients(const Parts& parts)
    : parts_(parts), most_((std::int64_t{1} << 62) / std::max<std::int64_t>(parts.terms, 1)) {}

const nn::Gradients& ExactGradients::begin(Pass pass) {
  pass_ = pass;
  loss_added_ = false;
  if (pass.first) parts_.units.enqueue_clear(parts_.stream);
  return parts_.sums;
}

void ExactGradients::before_backward() {
  if (pass_.last) parts_.next.before_backward();
}

std::int64_t* ExactGradients::units_of(int parameter) const {
  const nn::ArenaLayout& layout = parts_.sums.layout;
  const int bucket = layout.bucket_of(parameter);
  return parts_.units.bucket(bucket) + (layout.parameter(parameter).offset - layout.bucket(bucket).offset);
}

void ExactGradients::gradient_ready(int parameter) {
  if (!loss_added_) enqueue_loss();  // it is ready before all gradients
  parts_.kernel.add(parts_.stream, {.elements = parts_.sums.layout.parameter(parameter).elements,
                                    .x = parts_.sums.parameter(parameter),
                                    .scale = loss_scale_,
                                    .units = units_of(parameter),
                                    .refused = parts_.units.refused(),
                                    .unit = kUnit,
                                    .most = most_});
  if (pass_.last) parts_.next.gradient_ready(parameter);
}

void ExactGradients::enqueue_loss() {
  loss_added_ = true;
  parts_.kernel.add(parts_.stream, {.elements = 1,
                                    .x = parts_.sums.riders,
                                    .units = parts_.units.loss(),
                                    .refused = parts_.units.refused_losses(),
                                    .unit = kLossUnit,
                                    .most = most_});
}

void ExactGradients::enqueue_end() {
  if (!pass_.last) return;
  parts_.next.enqueue_join();
  for (int parameter = 0; parameter < parts_.sums.layout.parameters(); ++parameter)
    parts_.kernel.read(parts_.stream, {.elements = parts_.sums.layout.parameter(parameter).elements,
                                       .units = units_of(parameter),
                                       .refused = parts_.units.refused(),
                                       .scale = loss_scale_,
                                       .x = parts_.sums.parameter(parameter),
                                       .unit = kUnit});
  parts_.kernel.read(parts_.stream, {.elements = 1,
                                     .units = parts_.units.loss(),
                                     .refused = parts_.units.refused_losses(),
                                     .x = parts_.sums.riders,
                                     .unit = kLossUnit});
}

}  // namespace gradring::train
