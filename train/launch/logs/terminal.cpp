// SPDX-License-Identifier: Apache-2.0
#include "train/launch/logs/terminal.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace gradring::train {
namespace {

/// So much is written without blocking where poll() says that there is room: whole lines, if there are any.
std::string_view next_piece(std::string_view waiting) {
  const std::string_view piece = waiting.substr(0, PIPE_BUF);
  const auto end = piece.rfind('\n');
  return end == std::string_view::npos ? piece : piece.substr(0, end + 1);
}

}  // namespace

void Terminal::write(std::string_view text) {
  waiting_ += text;
  catch_up();
}

void Terminal::catch_up() {
  std::size_t written = 0;
  while (written < waiting_.size()) {
    pollfd room = {fd_, POLLOUT, 0};
    if (::poll(&room, 1, 0) <= 0) break;
    const std::string_view piece = next_piece(std::string_view(waiting_).substr(written));
    const ssize_t count = ::write(fd_, piece.data(), piece.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) break;
    written = count > 0 ? written + static_cast<std::size_t>(count) : waiting_.size();  // closed, or its disk is full
  }
  waiting_.erase(0, written);
}

void Terminal::finish(int interrupt) {
  while (is_behind()) {
    pollfd sources[] = {{fd_, POLLOUT, 0}, {interrupt, POLLIN, 0}};
    if (::poll(sources, 2, -1) < 0 && errno != EINTR) return;
    if (sources[1].revents != 0) return;
    catch_up();
  }
}

}  // namespace gradring::train
