// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/kernel_set.h"
#include "kernels/variant.h"

namespace gradring::nn {

/// Our kernels that do what a library leaves over.
struct HelperKernels {
  kernels::bias::Variant bias;
  kernels::relu::Variant relu;
  kernels::cast::Variant cast;

  static HelperKernels pick(const kernels::KernelSet& kernels, const kernels::Device& device, kernels::DType dtype) {
    return {.bias = kernels::pick_variant(kernels.bias, device, dtype),
            .relu = kernels::pick_variant(kernels.relu, device, dtype),
            .cast = kernels::pick_variant(kernels.cast, device, dtype)};
  }
};

}  // namespace gradring::nn
