// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"

namespace gradring::kernels::bench {

/// Where an argument points: the reference computes on the host, the variants on the device.
enum class Side : std::uint8_t { host, device };

/// An array that is lent to a kernel, once for each side. Starts anew as often as it is asked to.
class BenchArray {
 public:
  /// Errors    DeviceError if there is no memory.
  BenchArray(Device& device, DType dtype, std::span<const double> start);

  /// The first values, on both sides; blocks.
  void reset(Stream& stream);
  /// What stands there now; blocks.
  std::vector<double> values(Side side, Stream& stream) const;

  void* at(Side side) const { return side == Side::host ? host_.data() : device_.data(); }
  template <class T>
  T* as(Side side) const {
    return static_cast<T*>(at(side));
  }
  std::size_t elements() const { return elements_; }
  std::size_t bytes() const { return elements_ * size_of(dtype_); }

 private:
  DType dtype_;
  std::size_t elements_;
  Buffer start_;
  Buffer host_;
  Buffer device_;
};

}  // namespace gradring::kernels::bench
