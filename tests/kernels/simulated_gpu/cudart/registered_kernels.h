// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gradring::tests {

/// A fat binary as nvcc writes it, of uncompressed PTX, registered as nvcc's host code does. It stays until the process
/// ends.
class RegisteredKernels {
 public:
  struct Text {
    std::uint32_t compute_capability = 90;
    std::string ptx;
  };

  explicit RegisteredKernels(const std::vector<Text>& texts);

  /// Registers a kernel; returns what a program names it by.
  const void* kernel(const char* name);
  /// The same for a variable.
  const void* variable(const char* name, std::size_t bytes);
  /// The same for a managed variable, whose address becomes *slot.
  void managed_variable(const char* name, std::size_t bytes, void** slot);
  void** binary() const { return binary_; }
  /// What it was registered by.
  const void* wrapper() const { return wrapper_; }

 private:
  void** binary_ = nullptr;
  const void* wrapper_ = nullptr;
};

}  // namespace gradring::tests
