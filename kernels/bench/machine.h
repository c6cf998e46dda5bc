// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "kernels/bench/kernel_case.h"
#include "kernels/kernel_set.h"

namespace gradring::kernels::bench {

/// What a kernel has to do.
struct Work {
  double footprint_bytes = 0;  ///< of all that it touches
  double traffic_bytes = 0;    ///< read and written
  double unread_bytes = 0;     ///< of these, overwritten without having been read
  double flops = 0;
  DType factors = DType::f32;  ///< of the products: 16 bits may go to tensor cores
};

/// The device that is measured: what it can do at most, and how its caches are put off.
class Machine {
 public:
  virtual ~Machine() = default;
  /// One line: what it can do, measured now.
  virtual std::string limits() = 0;
  /// The least time for some work, with its arrays in cache as far as they fit, or (cold) in none.
  virtual double least_seconds(const Work& work, bool cold) = 0;
  /// Sees to it that the next access to the arrays of `c` goes to memory.
  virtual void flush(const KernelCase& c) = 0;
};

/// One core of this processor: the multiply-adds and bytes a second of roof.h. Factors of 16 bits are multiplied in f32.
std::unique_ptr<Machine> make_cpu_machine();

/// A GPU: the bytes a second of its own copies, and the operations a second of arithmetic_roof.h. `device` and `kernels`, which
/// run on it, must outlive it.
///
/// Errors    DeviceError if there is no memory for the copies.
std::unique_ptr<Machine> make_gpu_machine(Device& device, const KernelSet& kernels);

}  // namespace gradring::kernels::bench
