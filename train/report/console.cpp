// SPDX-License-Identifier: Apache-2.0
#include "train/report/console.h"

#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <system_error>

#include "kernels/runtime/deadline.h"
#include "train/report/environment_error.h"

namespace gradring::train {
namespace {

/// Beyond this many bytes that nobody has read, the oldest are dropped.
constexpr std::size_t kMostWaiting = 4 << 20;
/// How long a run that failed or was stopped waits for the reader of its last lines.
constexpr std::chrono::seconds kLastWait(1);

/// A pipe without a reader, a terminal that was closed, or standard output closed from the start (reserve_standard_streams).
bool reader_closed(int fd, int error) {
  struct stat kind {};
  const bool is_file = ::fstat(fd, &kind) == 0 && S_ISREG(kind.st_mode);
  return error == EPIPE || error == EBADF || (error == EIO && !is_file);
}

}  // namespace

Console::Console(int fd) : fd_(fd), terminal_(fd) {
  ::signal(SIGPIPE, SIG_IGN);
  terminal_.on_failure = [this](int error) {
    error_ = error;
    if (report_) report_(message());
  };
}

Console::~Console() {
  terminal_.on_failure = {};
  terminal_.finish(Deadline::after(kLastWait));
}

void Console::write(std::string_view text) {
  if (error_ != 0) return;
  if (terminal_.waiting() > kMostWaiting) terminal_.replace_waiting("\n(output dropped: the reader is too slow)\n");
  terminal_.write(text);
}

void Console::on_failure(Report report) {
  report_ = std::move(report);
  if (error_ != 0 && report_) report_(message());
}

void Console::finish() {
  if (error_ == 0) terminal_.finish(std::nullopt);
  if (error_ != 0 && !reader_closed(fd_, error_))
    throw EnvironmentError("the output is incomplete: " + message() + "; free some space");
}

std::string Console::message() const {
  return "cannot write standard output: " + std::generic_category().message(error_);
}

}  // namespace gradring::train
