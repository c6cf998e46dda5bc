// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "kernels/bench/kernel_case.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/device.h"

namespace gradring::kernels::bench {

/// The work of one call of a kernel.
struct Work {
  double footprint_bytes = 0;  ///< of all arrays
  double traffic_bytes = 0;    ///< read and written
  double unread_bytes = 0;     ///< of these, overwritten without having been read
  double flops = 0;
  DType factors = DType::f32;  ///< of the products: 16 bits may go to tensor cores
};

/// The device under test: its measured limits, and how to flush its caches.
class Machine {
 public:
  virtual ~Machine() = default;
  /// The limits in one line, measured now.
  virtual std::string limits() = 0;
  /// The least time for some work, with its arrays in cache as far as they fit, or (cold) in none.
  virtual double least_seconds(const Work& work, bool cold) = 0;
  /// Removes the arrays of `c` from all caches, at once or as work on `stream`.
  virtual void flush(const KernelCase& c, Stream& stream) = 0;
};

/// One core of this processor, with the limits of CpuRoofline. Factors of 16 bits are multiplied in f32.
std::unique_ptr<Machine> make_cpu_machine();

/// A GPU: the bandwidth of its own copies, and the operations per second of PeakFlops. `device` and `kernels`, which
/// run on it, must outlive it.
///
/// Errors    DeviceError if there is no memory for the copies.
std::unique_ptr<Machine> make_gpu_machine(Device& device, const KernelSet& kernels);

/// The measured roofline of one core of this machine.
class CpuRoofline {
 public:
  /// Multiplications and additions in f32 per second, by independent fused multiply-adds.
  double flops_per_second();
  /// Bytes per second of the fastest of three loops (y = a x, y += x, y = a) over arrays of this total size:
  /// repeatedly, so that they come from the caches that hold them; or, cold, from memory. Measured for the next power
  /// of two.
  double bytes_per_second(double footprint_bytes, bool cold);
  /// The least time for `work`. What is overwritten unread counts twice, since a cache fetches it first.
  double seconds(const Work& work, bool cold);

 private:
  double flops_per_second_ = 0;
  std::map<std::pair<std::size_t, bool>, double> bytes_per_second_;
};

/// The most multiplications and additions per second of our own kernels on a device, measured by kernels/ops/peak: for f32
/// by multiply-adds, for f16 and bf16 on tensor cores, where the device has them.
///
/// Threads   one.
class PeakFlops {
 public:
  /// `kernels` run on `device`; both must outlive it.
  PeakFlops(Device& device, const KernelSet& kernels);

  /// Measured at the first call for a type.
  ///
  /// Errors    InvalidArgument if no kernel multiplies that type here.
  double per_second(DType dtype);
  /// The kernel that is measured for a type.
  const peak::Variant& variant(DType dtype) const;

 private:
  double measure(DType dtype);

  Device& device_;
  const KernelSet& kernels_;
  std::unique_ptr<Stream> stream_;
  std::map<DType, double> per_second_;
};

/// Removes these bytes from all caches; what was written there stays in memory.
/// x86: evict_x86_64.cpp, line by line; elsewhere evict_by_reading.cpp, by filling the caches with something else.
void evict(std::span<const std::byte> bytes);

}  // namespace gradring::kernels::bench
