// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <string_view>

namespace gradring {

/// Blocks SIGPIPE in this thread while it lives: a write to a pipe without a reader fails with EPIPE, and nothing else happens.
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

/// Writes to stderr at once. What cannot be written is dropped: a message must not end the program that it is about.
void print_to_stderr(std::string_view text) noexcept;

}  // namespace gradring
