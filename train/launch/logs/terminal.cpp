// SPDX-License-Identifier: Apache-2.0
#include "train/launch/logs/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "kernels/runtime/deadline.h"
#include "kernels/runtime/file.h"

namespace gradring::train {
namespace {

/// At most PIPE_BUF bytes, which a pipe takes atomically, and whole lines if possible.
std::string_view next_piece(std::string_view waiting) {
  const std::string_view piece = waiting.substr(0, PIPE_BUF);
  const auto end = piece.rfind('\n');
  return end == std::string_view::npos ? piece : piece.substr(0, end + 1);
}

/// Reopens a pipe or a terminal as non-blocking. Files never block, and their offset is shared.
UniqueFd reopen(int fd) {
  struct stat kind {};
  if (::fstat(fd, &kind) != 0 || !(S_ISFIFO(kind.st_mode) || S_ISCHR(kind.st_mode))) return {};
  return UniqueFd(::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

Terminal::Terminal(int fd) : own_(reopen(fd)), fd_(own_ ? own_.get() : fd) {}

void Terminal::write(std::string_view text) {
  waiting_ += text;
  catch_up();
}

void Terminal::catch_up() {
  if (!is_behind()) return;
  const NoSigpipe none;
  std::size_t written = 0;
  int error = 0;
  while (written < waiting_.size()) {
    pollfd room = {fd_, POLLOUT, 0};
    if (::poll(&room, 1, 0) <= 0) break;
    const std::string_view piece = next_piece(std::string_view(waiting_).substr(written));
    const ssize_t count = ::write(fd_, piece.data(), piece.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) break;
    if (count < 0) error = errno;
    written = count > 0 ? written + static_cast<std::size_t>(count) : waiting_.size();
  }
  waiting_.erase(0, written);
  if (error != 0 && !std::exchange(failed_, true) && on_failure) on_failure(error);
}

void Terminal::finish(const std::optional<Deadline>& deadline) {
  while (is_behind() && !(deadline && deadline->passed())) {
    pollfd room = {fd_, POLLOUT, 0};
    ::poll(&room, 1, poll_timeout(deadline));
    catch_up();
  }
}

}  // namespace gradring::train
