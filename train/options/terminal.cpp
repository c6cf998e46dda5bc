// SPDX-License-Identifier: Apache-2.0
#include "train/options/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "kernels/base/deadline.h"
#include "kernels/base/file.h"

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

bool are_same(int fd, int other) {
  struct stat one {
  }, two{};
  return ::fstat(fd, &one) == 0 && ::fstat(other, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

}  // namespace

Terminals::Terminals() {
  if (are_same(STDOUT_FILENO, STDERR_FILENO)) err.share_line(out);
}

Terminal::Terminal(int fd) : own_(reopen(fd)), fd_(own_ ? own_.get() : fd) {}

void Terminal::write(std::string_view text) {
  constexpr int kNobody = 0;
  write(text, kNobody);
}

void Terminal::write(std::string_view text, int writer) {
  if (text.empty()) return;
  const int before = std::exchange(line_->writer, text.ends_with('\n') ? 0 : writer);
  if (before != 0 && before != writer) waiting_ += '\n';
  if (before != writer) line_->since = Deadline::Clock::now();
  waiting_ += text;
  catch_up();
}

std::optional<std::chrono::nanoseconds> Terminal::age_of_other_line(int writer) const {
  if (line_->writer == 0 || line_->writer == writer) return std::nullopt;
  return Deadline::Clock::now() - line_->since;
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
