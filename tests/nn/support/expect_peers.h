// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "kernels/ops/peers.h"
#include "kernels/runtime/device.h"

namespace gradring::tests {

/// What the peers of each operation are called; empty where there are to be none.
struct PeerNames {
  std::string conv2d, gemm, fused;
};

/// Runs the cases of conv2d, gemm and conv_relu_pool on awkward shapes with the peers of `device`, a CPU, as the
/// benchmark does: fails unless each has a peer of that name whose results are within the contract's bounds.
void expect_peers(kernels::PeerMaker& peers, kernels::Device& device, kernels::DType dtype, const PeerNames& names);

}  // namespace gradring::tests
