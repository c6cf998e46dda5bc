// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>

#include "kernels/kernel_set.h"
#include "kernels/runtime/device.h"

namespace gradring::kernels::bench {

/// The most multiplications and additions a second that kernels of ours get out of a device, measured in this run by those
/// of kernels/peak: for f32 by multiply-adds, for f16 and bf16 on tensor cores, where the device has them.
///
/// Threads   one.
class ArithmeticRoof {
 public:
  /// `kernels` run on `device`; both must outlive it.
  ArithmeticRoof(Device& device, const KernelSet& kernels);

  /// Measured at the first question.
  ///
  /// Errors    InvalidArgument if no kernel multiplies that type here.
  double flops_per_second(DType dtype);

 private:
  double measure(DType dtype);

  Device& device_;
  const KernelSet& kernels_;
  std::unique_ptr<Stream> stream_;
  std::map<DType, double> flops_per_second_;
};

}  // namespace gradring::kernels::bench
