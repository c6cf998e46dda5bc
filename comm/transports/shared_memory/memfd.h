// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "kernels/base/file.h"

namespace gradring::comm {

/// An anonymous file in memory (memfd), of which ranges are allocated and released: it grows to what is in use at most,
/// and cannot outlive the processes that use it.
class Memfd {
 public:
  using Mapping = std::shared_ptr<std::byte>;

  /// Errors    DeviceError.
  static Memfd create();
  /// Opens the memfd that process `pid` holds as descriptor `fd`. Both must belong to the same user.
  ///
  /// Errors    DeviceError.
  static Memfd open(int pid, int fd);

  int fd() const { return file_->fd.get(); }
  /// Size in bytes, now.
  std::size_t size() const;
  /// At least `bytes` zero bytes, backed by memory: of a released range, else at the end. Returns their offset.
  ///
  /// Errors    DeviceError if there is not enough memory.
  std::size_t allocate(std::size_t bytes);
  /// Maps `bytes` bytes at `offset`, a result of allocate, here or in the process that created the file.
  Mapping map(std::size_t offset, std::size_t bytes) const;
  /// The same for the owner: all pages are populated, and the range is released when the mapping ends.
  Mapping map_and_release(std::size_t offset, std::size_t bytes) const;

 private:
  struct File {
    UniqueFd fd;
    std::mutex mutex;                             // guards the rest
    std::map<std::size_t, std::size_t> released;  // ranges that may be allocated: length by offset, none adjacent
  };
  explicit Memfd(UniqueFd fd) : file_(std::make_shared<File>(std::move(fd))) {}
  static void release(File& file, std::size_t offset, std::size_t length) noexcept;

  std::shared_ptr<File> file_;  // shared with the mappings that release ranges
};

}  // namespace gradring::comm
