// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/engine/stacks.h"

#include <sys/mman.h>

#include <string>

#include "kernels/runtime/error.h"

namespace gradring::simt::detail {
Stacks::Stacks(std::size_t count, std::size_t bytes_each) : count_(count), bytes_each_(bytes_each) {
  const std::size_t bytes = count * bytes_each;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw DeviceError("no " + std::to_string(bytes) + " bytes of address space left for the stacks of a block");
  memory_ = static_cast<char*>(memory);
}

Stacks::~Stacks() { munmap(memory_, count_ * bytes_each_); }

}  // namespace gradring::simt::detail
