// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "kernels/host/host_device.h"
#include "nn/backend/cuda/cuda_libraries.h"
#include "tests/nn/backend/cuda/deviceless_cudnn.h"

namespace gradring::tests {

/// A convolution as the CUDA backend plans it, with the real cuDNN for a GPU that is not there. Its passes note their
/// engines and touch no memory.
class DevicelessPlan {
 public:
  /// `cudnn` must outlive it.
  DevicelessPlan(DevicelessCudnn& cudnn, const std::vector<nn::NodeSpec>& nodes, const nn::CudaBackendOptions& options);

  /// Whether cuDNN has an engine for every pass.
  bool made() const { return plan_ != nullptr; }
  std::size_t workspace_bytes() const { return plan_->workspace_bytes(); }

  /// The engines of a batch: forward and, if the nodes have a backward pass, wgrad and, if they ask for it, dgrad.
  struct Engines {
    DevicelessCudnn::Executed forward;
    std::vector<DevicelessCudnn::Executed> backward;

    std::vector<DevicelessCudnn::Executed> all() const;
  };
  Engines run(std::int64_t batch);

 private:
  DevicelessCudnn& cudnn_;
  kernels::HostDevice device_;
  nn::Backward backward_;
  std::unique_ptr<nn::Plan> plan_;
};

}  // namespace gradring::tests
