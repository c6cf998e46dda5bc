// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

namespace gradring::simulated_gpu {

/// The calls of the host that led to a call of CUDA's: return addresses, of which texts are made when somebody asks.
class HostStack {
 public:
  /// Of the calling thread.
  static HostStack here();

  /// From the innermost on to main: "step(float*, int)+0x2c in ./program". Without frames of this library, of nvcc's
  /// stubs of kernels, and of the C library. A program without a symbol table has "./program+0x1234".
  std::vector<std::string> texts() const;

 private:
  static constexpr int kMostFrames = 32;
  struct Walk;

  std::array<void*, kMostFrames> frames_{};
  int count_ = 0;
};

}  // namespace gradring::simulated_gpu
