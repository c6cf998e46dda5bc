// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "kernels/runtime/error.h"
#include "kernels/simt/site.h"

namespace gradring::simt {

/// A kernel broke a rule of the CUDA execution model, or was launched in a way that no GPU accepts. The message names
/// the threads and, as file:line, the places. Thrown by launch on an in-place stream, by the next call on a threaded
/// one.
class Error : public DeviceError {
 public:
  Error(const std::string& message, Site site) : DeviceError(message), site_(site) {}
  /// Where in the kernel (or, for a bad launch, at which launch).
  Site site() const { return site_; }

 private:
  Site site_;
};

}  // namespace gradring::simt
