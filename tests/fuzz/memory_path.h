// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "kernels/base/file.h"

namespace gradring::tests {

/// Bytes in memory under a path, for parsers that open their file themselves.
class MemoryPath {
 public:
  MemoryPath(const std::uint8_t* data, std::size_t size) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    while (size > 0) {
      const ssize_t written = ::write(fd_.get(), data, size);
      if (written <= 0) std::abort();
      data += written;
      size -= static_cast<std::size_t>(written);
    }
  }

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }

 private:
  UniqueFd fd_;
};

}  // namespace gradring::tests
