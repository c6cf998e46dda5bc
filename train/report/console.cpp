// SPDX-License-Identifier: Apache-2.0
#include "train/report/console.h"

#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "kernels/runtime/write_all.h"
#include "train/report/environment_error.h"

namespace gradring::train {
namespace {

/// A pipe without a reader, a terminal that was closed, or standard output closed from the start (reserve_standard_streams).
bool reader_closed(int fd, int error) {
  struct stat kind {};
  const bool is_file = ::fstat(fd, &kind) == 0 && S_ISREG(kind.st_mode);
  return error == EPIPE || error == EBADF || (error == EIO && !is_file);
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
  if (error_ != 0 && !reader_closed(fd_, error_))
    throw EnvironmentError("the output is incomplete: " + message() + "; free some space");
}

std::string Console::message() const {
  return "cannot write standard output: " + std::generic_category().message(error_);
}

}  // namespace gradring::train
