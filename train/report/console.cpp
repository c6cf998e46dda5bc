// SPDX-License-Identifier: Apache-2.0
#include "train/report/console.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "train/report/environment_error.h"

namespace gradring::train {
namespace {

/// Returns 0, or errno of the write that failed.
int write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {  // somebody who shares the pipe has made it non-blocking
      pollfd room = {fd, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

/// A pipe without a reader, or a terminal that was closed.
bool nobody_reads(int fd, int error) {
  struct stat kind {};
  const bool is_file = ::fstat(fd, &kind) == 0 && S_ISREG(kind.st_mode);
  return error == EPIPE || (error == EIO && !is_file);
}

}  // namespace

Console::Console(int fd) : fd_(fd) { ::signal(SIGPIPE, SIG_IGN); }

void Console::write(std::string_view text) {
  if (error_ != 0) return;
  error_ = write_all(fd_, text);
  if (error_ != 0 && report_) report_(message());
}

void Console::on_failure(Report report) {
  report_ = std::move(report);
  if (error_ != 0 && report_) report_(message());
}

void Console::check() const {
  if (error_ != 0 && !nobody_reads(fd_, error_)) throw EnvironmentError(message());
}

std::string Console::message() const {
  return "cannot write standard output: " + std::generic_category().message(error_);
}

void print_to_stderr(std::string_view text) noexcept { write_all(STDERR_FILENO, text); }

}  // namespace gradring::train
