// SPDX-License-Identifier: Apache-2.0
#include "train/precision/compute_weights.h"

namespace gradring::train {

ComputeWeights::ComputeWeights(const nn::Arena& master, kernels::DType dtype, kernels::Device& device,
                               const kernels::cast::Variant& cast)
    : master_(master), dtype_(dtype), cast_(cast) {
  if (copied()) copy_ = device.allocate(master.layout.elements() * kernels::size_of(dtype));
}

nn::Weights ComputeWeights::view() const {
  if (!copied()) return nn::weights_in(master_);
  return {.layout = master_.layout, .dtype = dtype_, .data = copy_.data()};
}

RoundedCopy ComputeWeights::copy() const { return {.dtype = dtype_, .data = copy_.data()}; }

void ComputeWeights::enqueue_refresh(kernels::Stream& stream) {
  if (!copied()) return;
  cast_.run(stream, {.from = kernels::DType::f32,
                     .to = dtype_,
                     .x = master_.data,
                     .y = copy_.data(),
                     .elements = master_.layout.elements()});
}

}  // namespace gradring::train
