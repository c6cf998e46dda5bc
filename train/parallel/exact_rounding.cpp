// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/exact_rounding.h"

#include <algorithm>

namespace gradring::train {
namespace {

/// Of gradients without the loss scale, and of losses: 62 bits from there up are 2^18 and 2^38.
constexpr double kUnit = 0x1p-44;
constexpr double kLossUnit = 0x1p-24;

/// The loss, how often it was refused, and how often something of each parameter.
std::size_t totals_of(int parameters) { return 2 + static_cast<std::size_t>(parameters); }

}  // namespace

std::size_t ExactRounding::bytes_needed(int parameters) { return totals_of(parameters) * sizeof(std::int64_t); }

ExactRounding::ExactRounding(const Parts& parts)
    : parts_(parts),
      most_((std::int64_t{1} << 62) / std::max<std::int64_t>(parts.terms, 1)),
      totals_(parts.group.allocate(bytes_needed(parts.parameters))) {}

void ExactRounding::enqueue_clear() { parts_.stream.enqueue_zero(totals_->data(), totals_->size()); }

void ExactRounding::enqueue_add(int parameter, std::size_t elements, const float* gradients, std::int64_t* units) {
  parts_.kernel.add(parts_.stream, {.elements = elements,
                                    .x = gradients,
                                    .scale = loss_scale_,
                                    .units = units,
                                    .refused = refused(parameter),
                                    .unit = kUnit,
                                    .most = most_});
}

void ExactRounding::enqueue_add_loss(const float* loss_of_pass) {
  parts_.kernel.add(parts_.stream, {.elements = 1,
                                    .x = loss_of_pass,
                                    .units = loss(),
                                    .refused = refused_losses(),
                                    .unit = kLossUnit,
                                    .most = most_});
}

void ExactRounding::enqueue_sum(kernels::Stream& stream, comm::AllReduceAlgorithm algorithm) {
  parts_.group.all_reduce(
      {.segment = totals_.get(), .slice = {0, totals_of(parts_.parameters)}, .dtype = kernels::DType::i64}, stream,
      algorithm);
}

void ExactRounding::enqueue_read(int parameter, std::size_t elements, const std::int64_t* units, float* gradients) {
  parts_.kernel.read(parts_.stream, {.elements = elements,
                                     .units = units,
                                     .refused = refused(parameter),
                                     .scale = loss_scale_,
                                     .x = gradients,
                                     .unit = kUnit});
}

void ExactRounding::enqueue_read_loss(float* sum) {
  parts_.kernel.read(parts_.stream,
                     {.elements = 1, .units = loss(), .refused = refused_losses(), .x = sum, .unit = kLossUnit});
}

}  // namespace gradring::train
