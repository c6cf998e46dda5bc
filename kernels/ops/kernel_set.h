// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "kernels/ops/activations/activations.h"
#include "kernels/ops/avg_pool2d/avg_pool2d.h"
#include "kernels/ops/batch_norm/batch_norm.h"
#include "kernels/ops/bias/bias.h"
#include "kernels/ops/conv2d/conv2d.h"
#include "kernels/ops/conv_relu_pool/conv_relu_pool.h"
#include "kernels/ops/cross_entropy/cross_entropy.h"
#include "kernels/ops/dropout/dropout.h"
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/exact_sum/exact_sum.h"
#include "kernels/ops/gather_batch/gather_batch.h"
#include "kernels/ops/gemm/gemm.h"
#include "kernels/ops/gradient_statistics/gradient_statistics.h"
#include "kernels/ops/max_pool2d/max_pool2d.h"
#include "kernels/ops/muon/muon.h"
#include "kernels/ops/optimizers/optimizers.h"
#include "kernels/ops/peak/peak.h"
#include "kernels/ops/step_state/step_state.h"
#include "kernels/ops/tally/tally.h"

namespace gradring::kernels {

/// Every table of kernels on one kind of device: a backend gets one, so that it does not depend on the device.
/// The CUDA module hands out nvcc's copy, everything else links the host compiler's.
struct KernelSet {
  std::span<const accumulate::Variant> accumulate;
  std::span<const adam::Variant> adam;
  std::span<const avg_pool2d::Variant> avg_pool2d;
  std::span<const batch_norm::Variant> batch_norm;
  std::span<const bias::Variant> bias;
  std::span<const cast::Variant> cast;
  std::span<const conv2d::Variant> conv2d;  ///< of one group
  std::span<const conv_relu_pool::Variant> conv_relu_pool;
  std::span<const dropout::Variant> dropout;
  std::span<const ema::Variant> ema;
  std::span<const exact_sum::Variant> exact_sum;
  std::span<const fill::Variant> fill;
  std::span<const gather_batch::Variant> gather_batch;
  std::span<const gelu::Variant> gelu;
  std::span<const gemm::Variant> gemm;
  std::span<const gradient_statistics::Variant> gradient_statistics;
  std::span<const conv2d::Variant> grouped_conv2d;  ///< of any number of groups
  std::span<const linear_cross_entropy::Variant> linear_cross_entropy;
  std::span<const max_pool2d::Variant> max_pool2d;
  std::span<const muon::Variant> muon;
  std::span<const peak::Variant> peak;
  std::span<const relu::Variant> relu;
  std::span<const scale::Variant> scale;
  std::span<const sgd::Variant> sgd;
  std::span<const silu::Variant> silu;
  std::span<const softmax_cross_entropy::Variant> softmax_cross_entropy;
  std::span<const step_state::Variant> step_state;
  std::span<const tally::Variant> tally;
};

inline namespace GRADRING_KERNEL_COPY {
KernelSet kernel_set();
}  // namespace GRADRING_KERNEL_COPY

}  // namespace gradring::kernels
