// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/simulated_gpu/machine/launch.h"

namespace gradring::simulated_gpu {

class Warp;
struct Operation;

/// A call, by one thread, of a function that the module declares and the runtime provides: vprintf, malloc. Such a
/// function is called for each thread, by all host threads that execute blocks.
class RuntimeCall {
 public:
  /// Memory of a parameter or result.
  using Bytes = std::span<std::byte>;

  RuntimeCall(const Operation& operation, Warp& warp, unsigned lane, std::vector<Bytes> arguments, Bytes result)
      : operation_(operation), warp_(warp), lane_(lane), arguments_(std::move(arguments)), result_(result) {}

  std::size_t argument_count() const { return arguments_.size(); }
  /// Errors    Fault if the module declares an argument of another size.
  template <class T>
  T argument(std::size_t index) const {
    if (index >= arguments_.size() || arguments_[index].size() != sizeof(T)) fail_signature();
    T value;
    std::memcpy(&value, arguments_[index].data(), sizeof value);
    return value;
  }
  template <class T>
  void set_result(T value) {
    if (result_.size() != sizeof value) fail_signature();
    std::memcpy(result_.data(), &value, sizeof value);
  }
  /// What the thread has at a generic address in global or local memory.
  ///
  /// Errors    Fault, as of a load.
  std::vector<std::byte> read(std::uint64_t address, std::size_t bytes) const;
  /// Up to its zero byte.
  std::string string_at(std::uint64_t address) const;

  int device() const;
  Extent block() const;
  Extent thread() const;
  /// "thread (1, 0, 0) of block (0, 0, 0)\n   in kernel, file:line..."
  std::string location() const;
  /// Throws a Fault with the location.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  [[noreturn]] void fail_signature() const;

  const Operation& operation_;
  Warp& warp_;
  unsigned lane_;
  std::vector<Bytes> arguments_;
  Bytes result_;
};

}  // namespace gradring::simulated_gpu
