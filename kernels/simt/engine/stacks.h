// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradring::simt::detail {

/// Stacks for the threads of one block: one reserved range of addresses, of which the system backs only what is touched.
class Stacks {
 public:
  /// Errors    DeviceError if the addresses are not to be had.
  Stacks(std::size_t count, std::size_t bytes_each);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  char* stack(std::size_t index) const { return memory_ + index * bytes_each_; }
  /// Usable bytes of a stack. They differ a little from stack to stack: tops at equal offsets would fall into the same
  /// sets of the processor's cache.
  std::size_t usable_bytes(std::size_t index) const { return bytes_each_ - index % 61 * 64; }

  /// Marks the end of a stack, before its first use; overflown is true if the mark has been overwritten since.
  /// Guard pages would be surer, but cost two mappings a stack, of which a process has only 65,530.
  void mark_end(std::size_t index) const { *end_word(index) = kEndMark; }
  bool overflown(std::size_t index) const { return *end_word(index) != kEndMark; }

 private:
  static constexpr std::uint64_t kEndMark = 0x7374616b656e6421u;
  std::uint64_t* end_word(std::size_t index) const { return reinterpret_cast<std::uint64_t*>(stack(index)); }

  std::size_t count_;
  std::size_t bytes_each_;
  char* memory_;
};

}  // namespace gradring::simt::detail
