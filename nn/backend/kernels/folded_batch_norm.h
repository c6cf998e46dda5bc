// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/ops/batch_norm/batch_norm.h"
#include "nn/backend/backend.h"

namespace gradring::nn {

/// The chain without the batch normalization that follows its first node, a convolution, which computes it, too, with
/// other weights: in evaluation. Empty if there is no such pair; if an addition follows, which normalization takes along,
/// in one pass; or if the convolution has more weights than outputs in a batch, so that folding costs more than it saves.
std::vector<NodeSpec> without_batch_norm(std::span<const NodeSpec> nodes);

/// Plans `nodes` by `inner`, a plan of without_batch_norm(nodes): every pass folds the weights in the workspace first, since
/// they change between two evaluations of a training.
std::unique_ptr<Plan> fold_batch_norm(std::span<const NodeSpec> nodes, std::unique_ptr<Plan> inner,
                                      const kernels::batch_norm::Variant& variant);

}  // namespace gradring::nn
