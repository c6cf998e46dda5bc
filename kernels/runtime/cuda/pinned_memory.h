// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/runtime/buffer.h"

namespace gradring::kernels {

/// Host memory that stays where it is, so that every device of the process copies from and to it without a detour. Slow to
/// get, and to give back, which may wait for the device: keep it.
///
/// Threads   any.
class PinnedMemory final : public Buffer::Resource {
 public:
  /// For device `index`, though others reach it too.
  explicit PinnedMemory(int index) : index_(index) {}

  /// Errors    DeviceError if the memory is not there.
  Buffer allocate(std::size_t bytes);
  void release(void* data, std::size_t bytes) noexcept override;

 private:
  int index_;
};

}  // namespace gradring::kernels
