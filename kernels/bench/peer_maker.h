// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "kernels/bench/kernel_case.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/conv_relu_pool/conv_relu_pool.h"
#include "kernels/gemm/gemm.h"

namespace gradring::kernels::bench {

/// Knows a library that fulfils the same contracts, to be measured beside our variants: the same arguments, arrays and bounds.
/// Kernels know no library; who does (nn's backends) implements this.
///
/// Each call is about one problem and its pointers, which stay as they are as long as the peer does; what they point at may
/// change between runs. The maker outlives its peers. Nothing is returned where the library has nothing for it.
///
/// Errors    DeviceError if the library fails.
class PeerMaker {
 public:
  using Peer = std::optional<KernelCase::Candidate>;

  virtual ~PeerMaker() = default;
  virtual Peer peer(const conv2d::ForwardArgs& args) = 0;
  virtual Peer peer(const conv2d::DgradArgs& args) = 0;
  virtual Peer peer(const conv2d::WgradArgs& args) = 0;
  virtual Peer peer(const gemm::Args& args) = 0;
  /// A library's convolution, then pooling by itself.
  virtual Peer peer(const conv_relu_pool::ForwardArgs& args) = 0;
  virtual Peer peer(const conv_relu_pool::BackwardArgs& args) = 0;
};

}  // namespace gradring::kernels::bench
