// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/write_all.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace gradring {

NoSigpipe::NoSigpipe() noexcept {
  ::sigemptyset(&pipe_);
  ::sigaddset(&pipe_, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
}

NoSigpipe::~NoSigpipe() {
  const timespec at_once{};
  while (::sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {  // another process that shares the pipe has made it non-blocking
      pollfd room = {fd, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

void print_to_stderr(std::string_view text) noexcept {
  const NoSigpipe none;
  write_all(STDERR_FILENO, text);
}

}  // namespace gradring
