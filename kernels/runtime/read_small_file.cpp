// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/read_small_file.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "kernels/runtime/deadline.h"
#include "kernels/runtime/poll_timeout.h"
#include "kernels/runtime/unique_fd.h"

namespace gradring {
namespace {

[[noreturn]] void fail(const char* what) {
  throw ReadError(std::string(what) + " (" + std::generic_category().message(errno) + ")");
}

/// Waits for bytes or for the end of the file. Opening a pipe does not: so it has no writer yet, perhaps.
void wait_for_bytes(const UniqueFd& fd, std::chrono::milliseconds patience) {
  const Deadline deadline = Deadline::after(patience);
  pollfd bytes = {fd.get(), POLLIN, 0};
  int ready = 0;
  do ready = ::poll(&bytes, 1, poll_timeout(deadline));
  while (ready < 0 && errno == EINTR);
  if (ready < 0) fail("cannot be read");
  if (ready == 0)
    throw ReadError("is a pipe or a terminal, and nothing came for " + std::to_string(patience.count()) + " ms");
}

}  // namespace

std::string read_small_file(const std::filesystem::path& path, std::size_t most_bytes,
                            std::chrono::milliseconds patience) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) fail("cannot be opened");
  std::string text;
  std::array<char, 64 * 1024> piece;
  while (text.size() <= most_bytes) {
    wait_for_bytes(fd, patience);
    const ssize_t count = ::read(fd.get(), piece.data(), piece.size());
    if (count == 0) return text;
    if (count > 0)
      text.append(piece.data(), static_cast<std::size_t>(count));
    else if (errno != EINTR && errno != EAGAIN)
      fail("cannot be read");
  }
  throw ReadError("is larger than " + std::to_string(most_bytes) + " bytes");
}

}  // namespace gradring
