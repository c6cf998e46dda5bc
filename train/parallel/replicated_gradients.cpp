// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/replicated_gradients.h"

#include "kernels/runtime/error.h"

namespace gradring::train {

ReplicatedGradients::ReplicatedGradients(const nn::Gradients& gradients, DistributedDataParallel& next)
    : gradients_(gradients), next_(next) {}

const nn::Gradients& ReplicatedGradients::begin(Pass pass) {
  check(pass.first, "gradients are to be accumulated, but windows were said to have one pass");
  last_pass_ = pass.last;
  return gradients_;
}

void ReplicatedGradients::before_backward() {
  if (last_pass_) next_.before_backward();
}

void ReplicatedGradients::gradient_ready(int parameter) {
  if (last_pass_) next_.gradient_ready(parameter);
}

void ReplicatedGradients::enqueue_end() {
  if (last_pass_) next_.enqueue_join();
}

}  // namespace gradring::train
