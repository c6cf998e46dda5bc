// SPDX-License-Identifier: Apache-2.0
#include "train/core/cuda_module/nccl_transport.h"

#include "kernels/runtime/cuda/cuda_device.h"
#include "kernels/runtime/cuda/cuda_error.h"
#include "kernels/runtime/cuda/cuda_stream.h"

namespace gradring::train {

std::unique_ptr<comm::Transport> make_nccl_transport(const comm::NcclOptions& options) {
  const auto& device = static_cast<const kernels::CudaDevice&>(options.device);  // the module makes no other
  comm::NcclOptions complete = options;
  complete.gpu = device.bus_id();
  complete.make_current = [index = device.id().index] { kernels::make_current(index); };
  complete.is_captured = [](kernels::Stream& stream) { return kernels::is_captured(stream); };
  return comm::make_nccl_transport(complete);
}

}  // namespace gradring::train
