// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "kernels/simulated_gpu/cudart/mapped_ranges.h"
#include "kernels/simulated_gpu/machine/launch.h"
#include "kernels/simulated_gpu/memory/global_memory.h"

namespace gradring::simulated_gpu {

/// What printf of kernels wrote, until the host waits for work.
///
/// Threads   any.
class DeviceOutput {
 public:
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    text_ += text;
  }
  /// To stdout.
  void print();

 private:
  std::mutex mutex_;
  std::string text_;
};

/// malloc and free of kernels.
///
/// Threads   any.
class DeviceHeap {
 public:
  DeviceHeap(GlobalMemory& memory, MappedRanges& addresses) : memory_(memory), addresses_(addresses) {}

  /// 0 if less than `bytes` are left of `limit`.
  std::uint64_t allocate(std::size_t bytes, int device, std::size_t limit);
  /// False for an address that allocate() did not return, or that was freed.
  bool free(std::uint64_t address);

 private:
  GlobalMemory& memory_;
  MappedRanges& addresses_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::size_t> blocks_;  // bytes by address
  std::size_t used_ = 0;
};

/// `format` with the arguments that `read` gives, as CUDA's printf of kernels: `read_bytes(offset, bytes)` is of the
/// packed arguments, `read_string(address)` of the device's memory. `count` becomes the number of arguments.
///
/// Source    CUDA C++ Programming Guide 13.0, "Formatted output".
std::string formatted(const std::string& format,
                      const std::function<void(std::size_t offset, void* to, std::size_t bytes)>& read_bytes,
                      const std::function<std::string(std::uint64_t address)>& read_string, int& count);

struct Runtime;
/// vprintf, __assertfail, malloc, free.
RuntimeFunctions device_functions(Runtime& rt);

}  // namespace gradring::simulated_gpu
