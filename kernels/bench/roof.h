// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <utility>

namespace gradring::kernels::bench {

/// The most that one core of this machine can do, measured in this run: what a kernel's time is held against.
class Roof {
 public:
  /// Multiplications and additions in f32 a second, by fused multiply-adds that do not wait for each other.
  double flops_per_second();
  /// Bytes a second that the fastest of three loops (y = a x, y += x, y = a) moves through arrays of so many bytes together:
  /// again and again, so that they come from the caches that hold them; or, cold, from memory. Measured for the next power of
  /// two.
  double bytes_per_second(double footprint_bytes, bool cold);

  /// What a kernel has to do.
  struct Work {
    double footprint_bytes = 0;  ///< of all that it touches
    double traffic_bytes =
        0;  ///< read and written; what is overwritten unread counts twice, as a cache fetches it first
    double flops = 0;
  };
  /// The least time for it.
  double seconds(const Work& work, bool cold);

 private:
  double flops_per_second_ = 0;
  std::map<std::pair<std::size_t, bool>, double> bytes_per_second_;
};

}  // namespace gradring::kernels::bench
