// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/file.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <system_error>

#include "kernels/base/deadline.h"
#include "kernels/base/directory.h"
#include "kernels/base/printable.h"

namespace gradring {

bool is_at(const std::filesystem::path& path, const UniqueFd& file) { return is_at(FileAt(path), file); }

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
  while ((ready < 0 && errno == EINTR) || (ready == 0 && !deadline.passed()));
  if (ready < 0) fail("cannot be read");
  if (ready == 0)
    throw ReadError("is a pipe or a terminal that sent nothing for " + std::to_string(patience.count()) + " ms");
}

[[noreturn]] void throw_larger_than(std::size_t bytes) {
  throw ReadError("is larger than " + std::to_string(bytes) + " bytes");
}

}  // namespace

std::string read_small_file(const std::filesystem::path& path, std::size_t most_bytes,
                            std::chrono::milliseconds patience) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) fail("cannot be opened");
  return read_small_file(fd, most_bytes, patience);
}

std::string read_small_file(const UniqueFd& fd, std::size_t most_bytes, std::chrono::milliseconds patience) {
  std::string text;
  struct stat facts {};
  const bool has_size = ::fstat(fd.get(), &facts) == 0 && S_ISREG(facts.st_mode);
  if (has_size && static_cast<std::uint64_t>(facts.st_size) > most_bytes) throw_larger_than(most_bytes);
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
  throw_larger_than(most_bytes);
}

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

namespace {

/// Returns whether all was written.
bool write_to_stderr(std::string_view text) noexcept {
  constexpr auto kPatience = std::chrono::seconds(5);
  constexpr std::size_t kPiece = PIPE_BUF;  // does not block if poll() reports room
  static std::atomic<bool> is_blocked = false;
  while (!text.empty()) {
    pollfd room = {STDERR_FILENO, POLLOUT, 0};
    const Deadline deadline = Deadline::after(is_blocked ? std::chrono::seconds(0) : kPatience);
    int ready = 0;
    do ready = ::poll(&room, 1, poll_timeout(deadline));
    while (ready <= 0 && !deadline.passed());
    is_blocked = ready <= 0;
    if (is_blocked) return false;
    const ssize_t written = ::write(STDERR_FILENO, text.data(), std::min(text.size(), kPiece));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

// Part by part: there may be no memory for a copy.
void print_to_stderr(std::string_view text) noexcept {
  const NoSigpipe none;
  while (!text.empty()) {
    const std::size_t plain = printable_bytes(text, "\n\t");
    if (plain > 0 && !write_to_stderr(text.substr(0, plain))) return;
    text.remove_prefix(plain);
    if (text.empty()) return;
    const Character character = first_character(text);
    if (!write_to_stderr(escape_of(character, text[0]))) return;  // short enough to need no memory
    text.remove_prefix(character.bytes);
  }
}

std::optional<std::string> read_regular_file(const std::filesystem::path& path, std::size_t most_bytes) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  try {
    return read_small_file(file, most_bytes);
  } catch (const ReadError&) {
    return std::nullopt;
  }
}

}  // namespace gradring
