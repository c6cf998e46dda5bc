// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>

#include "kernels/base/error.h"

namespace gradring::simt {

/// The source location of a call in a kernel. Taken as a defaulted argument, so that it names the caller.
/// (clang has std::source_location only from version 16 on, and it is twice as large.)
struct Site {
  const char* file = "";
  int line = 0;

  static constexpr Site current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  bool operator==(const Site& other) const {
    return line == other.line && (file == other.file || std::strcmp(file, other.file) == 0);
  }
};

/// A kernel broke a rule of the CUDA execution model, or was launched in a way that no GPU accepts. The message names
/// the threads and, as file:line, the source locations. Thrown by launch on an in-place stream, by the next call on a
/// threaded one.
class Error : public DeviceError {
 public:
  Error(const std::string& message, Site site) : DeviceError(message), site_(site) {}
  /// Where in the kernel (or, for a bad launch, at which launch).
  Site site() const { return site_; }

 private:
  Site site_;
};

}  // namespace gradring::simt
