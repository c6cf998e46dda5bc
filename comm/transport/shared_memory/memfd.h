// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "kernels/runtime/file.h"

namespace gradring::comm {

/// A growing anonymous file in memory (memfd): it cannot outlive the processes that use it.
class Memfd {
 public:
  using Mapping = std::shared_ptr<std::byte>;

  /// Errors    DeviceError.
  static Memfd create();
  /// Opens the memfd that process `pid` holds as descriptor `fd`. Both must belong to the same user.
  ///
  /// Errors    DeviceError.
  static Memfd open(int pid, int fd);

  int fd() const { return fd_->get(); }
  /// Size in bytes, now.
  std::size_t size() const;
  /// Appends at least `bytes` zero bytes, backed by memory. Returns their offset.
  ///
  /// Errors    DeviceError if there is not enough memory.
  std::size_t grow(std::size_t bytes);
  /// Maps `bytes` bytes at `offset`, a result of grow.
  Mapping map(std::size_t offset, std::size_t bytes) const;
  /// The same for the owner: all pages are populated, and returned to the system when the mapping ends.
  Mapping map_and_release(std::size_t offset, std::size_t bytes) const;

 private:
  explicit Memfd(UniqueFd fd) : fd_(std::make_shared<UniqueFd>(std::move(fd))) {}

  std::shared_ptr<UniqueFd> fd_;  // shared with the mappings that return memory
};

}  // namespace gradring::comm
