// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/rotating_gradients.h"

#include "kernels/runtime/error.h"

namespace gradring::train {

RotatingGradients::RotatingGradients(const Parts& parts)
    : parts_(parts), places_(gradients_within(parts.gradients, parts.riders)) {}

const nn::Gradients& RotatingGradients::begin(Pass pass) {
  parts_.sums.begin(pass.first);
  return places_;
}

void RotatingGradients::before_backward() {
  open_ = 0;
  parts_.next.before_backward();
}

void RotatingGradients::gradients_begin(std::span<const int> parameters) {
  for (const int parameter : parameters)
    while (open_ <= parts_.gradients.layout().bucket_of(parameter)) enqueue_open(open_++);
}

/// What lies between its tensors must be 0, as it is where no other bucket comes: it is summed, and searched.
void RotatingGradients::enqueue_open(int bucket) {
  const int before = bucket - parts_.gradients.places();
  if (before >= 0) {
    check(before < parts_.next.begun(), "a plan writes more buckets at once than there are places for");
    parts_.next.enqueue_wait(parts_.sums.collected(before));
  }
  parts_.stream.enqueue_zero(parts_.gradients.data(bucket), parts_.gradients.bytes(bucket));
}

void RotatingGradients::enqueue_end() { parts_.next.enqueue_join(); }

}  // namespace gradring::train
