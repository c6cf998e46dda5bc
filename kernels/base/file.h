// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <unistd.h>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/base/error.h"

namespace gradring {

/// Owner of one file descriptor; -1 if none. Move-only.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// Gives the descriptor to the caller, who closes it.
  int release() { return std::exchange(fd_, -1); }
  void reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

/// Whether `path` still names the open file or folder: another process may have removed or replaced it.
bool is_at(const std::filesystem::path& path, const UniqueFd& file);

/// A file could not be read. The message is the reason alone: "cannot be opened (No such file or directory)".
class ReadError : public Error {
 public:
  using Error::Error;
};

/// The bytes of a file that the user named: a regular file, or a pipe such as a shell's <(command).
///
/// Errors    ReadError: it cannot be opened or read, has more than `most_bytes`, or is a pipe to which nothing is
///           written for `patience`.
/// Cost      memory for the contents, at most `most_bytes` and a little.
std::string read_small_file(const std::filesystem::path& path, std::size_t most_bytes,
                            std::chrono::milliseconds patience = std::chrono::seconds(10));
/// The same of one that is open.
std::string read_small_file(const UniqueFd& fd, std::size_t most_bytes,
                            std::chrono::milliseconds patience = std::chrono::seconds(10));

/// Blocks SIGPIPE in this thread while it lives: a write to a pipe without a reader fails with EPIPE, and nothing else
/// happens.
class NoSigpipe {
 public:
  NoSigpipe() noexcept;
  ~NoSigpipe();
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_{}, before_{};
};

/// Writes all of `text`; waits where a non-blocking descriptor takes no more.
///
/// Returns   0, or errno of the write that failed.
int write_all(int fd, std::string_view text) noexcept;

/// Writes to stderr; characters that a terminal obeys are escaped (printable.h), but for line breaks and tabs. Drops what
/// cannot be written; waits at most 5 s for a blocked reader, and not again for later texts.
void print_to_stderr(std::string_view text) noexcept;

/// The bytes of a file that another process may have written; nothing if it is missing, not a regular file (a FIFO, a
/// device), unreadable or larger than `most_bytes`. Does not block.
std::optional<std::string> read_regular_file(const std::filesystem::path& path, std::size_t most_bytes);

}  // namespace gradring
