// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/error.h"
#include "train/core/cuda_module/nccl_transport.h"

namespace gradring::train {

std::unique_ptr<comm::Transport> make_nccl_transport(const comm::NcclOptions&) {
  throw DeviceError(
      "this build has no NCCL, which several GPUs need: install NCCL 2 with its headers, and build again");
}

}  // namespace gradring::train
