// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/exact_gradients.h"

namespace gradring::train {

/// Passes add up as units: what they write, each writes anew.
const nn::Gradients& ExactGradients::begin(Pass pass) {
  pass_ = pass;
  loss_added_ = false;
  parts_.units.begin_pass(pass);
  return parts_.inner.begin({.first = true, .last = pass.last});
}

void ExactGradients::gradient_ready(int parameter) {
  if (!loss_added_) parts_.rounding.enqueue_add_loss(parts_.places.riders);  // it is ready before all gradients
  loss_added_ = true;
  parts_.rounding.enqueue_add(parameter, parts_.places.layout.parameter(parameter).elements,
                              parts_.places.parameter(parameter), parts_.units.parameter(parameter));
  parts_.inner.gradient_ready(parameter);
}

void ExactGradients::enqueue_end() {
  parts_.inner.enqueue_end();
  if (!pass_.last) return;
  for (int bucket = 0; bucket < parts_.places.layout.buckets(); ++bucket)
    for (const auto& [parameter, slice] : parts_.units.shards().parts(bucket))
      parts_.rounding.enqueue_read(parameter, slice.elements, parts_.units.sums(bucket) + slice.offset,
                                   parts_.sums[static_cast<std::size_t>(bucket)] + slice.offset);
  parts_.rounding.enqueue_read_loss(parts_.places.riders);  // which may ride in the last bucket
}

}  // namespace gradring::train
