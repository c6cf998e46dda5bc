// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "kernels/ops/conv2d/conv2d.h"
#include "kernels/ops/conv_relu_pool/conv_relu_pool.h"
#include "kernels/ops/gemm/gemm.h"
#include "kernels/runtime/stream.h"

namespace gradring::kernels {

/// An implementation with its arguments.
struct NamedCall {
  std::string name;
  std::function<void(Stream&)> run;
};

/// Makes peers for benchmarks from a library that fulfils the same contracts: the same arguments, arrays and bounds.
/// Kernels know no library; nn's backends implement this.
///
/// Each call is for one problem and its pointers, which stay valid as long as the peer; what they point at may change
/// between runs. The maker outlives its peers. Returns nothing if the library has no such operation.
///
/// Errors    DeviceError if the library fails.
class PeerMaker {
 public:
  using Peer = std::optional<NamedCall>;

  virtual ~PeerMaker() = default;
  virtual Peer peer(const conv2d::ForwardArgs& args) = 0;
  virtual Peer peer(const conv2d::DgradArgs& args) = 0;
  virtual Peer peer(const conv2d::WgradArgs& args) = 0;
  virtual Peer peer(const gemm::Args& args) = 0;
  /// A library's convolution, then pooling by itself.
  virtual Peer peer(const conv_relu_pool::ForwardArgs& args) = 0;
  virtual Peer peer(const conv_relu_pool::BackwardArgs& args) = 0;
};

}  // namespace gradring::kernels
