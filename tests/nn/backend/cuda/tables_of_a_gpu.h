// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/ops/kernel_set.h"
#include "tests/nn/backend/cuda/plan_rig.h"

namespace gradring::tests {

/// Our kernels as a GPU's tables support them, on the CPU's device.
class TablesOfAGpu {
 public:
  TablesOfAGpu() {
    constexpr auto floating = [](const kernels::Device&, kernels::DType) { return true; };
    constexpr auto single = [](const kernels::Device&, kernels::DType dtype) { return dtype == kernels::DType::f32; };
    constexpr auto half = [](const kernels::Device&, kernels::DType dtype) { return dtype != kernels::DType::f32; };
    for (kernels::conv2d::Variant variant : kernels::kernel_set().conv2d) {
      variant.supports = variant.name.ends_with("mma") ? +half : variant.name == "tiled" ? +single : +floating;
      if (variant.name != "panels") conv2d_.push_back(variant);  // a CPU's
    }
    for (kernels::conv_relu_pool::Variant variant : kernels::kernel_set().conv_relu_pool) {
      variant.supports = variant.name.ends_with("mma") ? +half : +floating;
      if (variant.name != "native") conv_relu_pool_.push_back(variant);  // which nvcc's set does not have
    }
    for (kernels::gemm::Variant variant : kernels::kernel_set().gemm) {
      variant.supports = variant.name == "strips" || variant.name == "tiled" ? +floating : +half;
      if (variant.name != "wgmma") gemm_.push_back(variant);  // which the CPU cannot execute
    }
  }
  kernels::KernelSet set() const {
    kernels::KernelSet set = kernels::kernel_set();
    set.conv2d = conv2d_;
    set.conv_relu_pool = conv_relu_pool_;
    set.gemm = gemm_;
    return set;
  }

 private:
  std::vector<kernels::conv2d::Variant> conv2d_;
  std::vector<kernels::conv_relu_pool::Variant> conv_relu_pool_;
  std::vector<kernels::gemm::Variant> gemm_;
};

/// Convolution, ReLU and pooling.
inline std::vector<nn::NodeSpec> pooled_convolution(kernels::DType dtype) {
  std::vector<nn::NodeSpec> nodes =
      layer_nodes(nn::Conv2d{.in_channels = 1, .out_channels = 2, .kernel = 3}, {2, 6, 6, 1}, true, dtype);
  const nn::Shape input = nodes.back().output;
  nodes.push_back({nn::MaxPool2d{}, input, nn::output_of(nn::MaxPool2d{}, input).shape, dtype});
  return nodes;
}

}  // namespace gradring::tests
