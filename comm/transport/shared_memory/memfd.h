// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "kernels/runtime/unique_fd.h"

namespace gradring::comm {

/// A growing file in memory, without a name in any file system: it cannot outlive the processes that use it.
class Memfd {
 public:
  using Mapping = std::shared_ptr<std::byte>;

  /// Errors    DeviceError.
  static Memfd create();
  /// The one that another process holds as descriptor `fd`. Both must belong to the same user.
  ///
  /// Errors    DeviceError; says why.
  static Memfd open(int pid, int fd);

  int fd() const { return fd_->get(); }
  /// Size in bytes, now.
  std::size_t size() const;
  /// Adds at least `bytes` zero bytes at the end, all of them backed by memory. Returns where they begin.
  ///
  /// Errors    DeviceError if there is not so much memory.
  std::size_t grow(std::size_t bytes);
  /// Maps `bytes` bytes that begin at `offset`, as grow returned it.
  Mapping map(std::size_t offset, std::size_t bytes) const;
  /// The same for the one who fills it: every page is there, and goes back to the system when the mapping ends.
  Mapping map_and_release(std::size_t offset, std::size_t bytes) const;

 private:
  explicit Memfd(UniqueFd fd) : fd_(std::make_shared<UniqueFd>(std::move(fd))) {}

  std::shared_ptr<UniqueFd> fd_;  // shared with the mappings that give memory back
};

}  // namespace gradring::comm
