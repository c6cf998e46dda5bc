// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <type_traits>

#include "kernels/runtime/stream.h"

namespace gradring::kernels {

/// The time that work takes on the device, between two marks in a stream of device `index`.
///
/// Threads   one.
class Stopwatch {
 public:
  explicit Stopwatch(int index);

  void start(Stream& stream) { record(start_, stream); }
  void stop(Stream& stream) { record(stop_, stream); }
  /// Once the stream has passed both marks. Resolution is about half a microsecond.
  ///
  /// Errors    DeviceError if it has not, or work before them failed.
  double seconds() const;

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const noexcept { (void)cudaEventDestroy(event); }
  };
  using Mark = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy>;

  Mark make_mark() const;
  void record(const Mark& mark, Stream& stream);

  int index_;
  Mark start_;
  Mark stop_;
};

}  // namespace gradring::kernels
