// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "kernels/runtime/device.h"

namespace gradring::simt_test {

/// Memory and a stream for one planted kernel: x = 1, 2, 3, ...; y = 0. Each ends where its last element does.
class Bench {
 public:
  explicit Bench(kernels::Device& device, std::size_t elements = 256)
      : stream_(device.make_stream(kernels::StreamMode::in_place)),
        x_(device.allocate(elements * sizeof(float), kernels::MemoryKind::device)),
        y_(device.allocate(elements * sizeof(float), kernels::MemoryKind::device)) {
    for (std::size_t i = 0; i < elements; ++i) {
      x_.as<float>()[i] = static_cast<float>(i + 1);
      y_.as<float>()[i] = 0.0f;
    }
  }

  kernels::Stream& stream() { return *stream_; }
  float* x() { return x_.as<float>(); }
  float* y() { return y_.as<float>(); }

  /// Whether y[i] == expected(i) for i < count.
  template <class Expected>
  bool holds(std::size_t count, Expected expected) {
    stream_->synchronize(Deadline::after(std::chrono::minutes(1)));
    for (std::size_t i = 0; i < count; ++i)
      if (!(y()[i] == expected(i))) return false;
    return true;
  }

 private:
  std::unique_ptr<kernels::Stream> stream_;
  kernels::Buffer x_, y_;
};

}  // namespace gradring::simt_test
