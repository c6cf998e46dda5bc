// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace gradring::simt::detail {

/// Stacks for the threads of one block: one reserved range of addresses, of which the system backs only what is touched.
/// The first stack lies highest, so that one that grows over its end grows into those that are taken into use later; the
/// block notices before they are. (Guard pages would cost two mappings a stack, of which a process has only 65,530.)
class Stacks {
 public:
  /// Errors    DeviceError if the addresses are not to be had.
  Stacks(std::size_t count, std::size_t bytes_each);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  char* stack(std::size_t index) const { return memory_ + (count_ - 1 - index) * bytes_each_; }
  /// Usable bytes of a stack. They differ a little from stack to stack: tops at equal offsets would fall into the same
  /// sets of the processor's cache.
  std::size_t usable_bytes(std::size_t index) const { return bytes_each_ - index % 61 * 64; }

 private:
  std::size_t count_;
  std::size_t bytes_each_;
  char* memory_;
};

}  // namespace gradring::simt::detail
