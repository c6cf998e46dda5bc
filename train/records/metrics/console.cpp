// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/console.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <system_error>

#include "kernels/base/deadline.h"
#include "kernels/base/file.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

/// More unread bytes than this are dropped.
constexpr std::size_t kMostWaiting = 4 << 20;
/// How long the destructor waits for a slow reader.
constexpr std::chrono::seconds kLastWait(1);

/// Whether a pipe has no reader, a terminal was closed, standard output was closed from the start
/// (reserve_standard_streams), or the reader took nothing for too long.
bool reader_closed(int fd, int error) {
  struct stat kind {};
  const bool is_file = ::fstat(fd, &kind) == 0 && S_ISREG(kind.st_mode);
  return error == EPIPE || error == EBADF || error == ETIMEDOUT || (error == EIO && !is_file);
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

void Console::finish(std::chrono::milliseconds patience) {
  std::size_t before = 0;
  do {
    before = terminal_.waiting();
    if (error_ == 0) terminal_.finish(Deadline::after(patience));
  } while (error_ == 0 && terminal_.is_behind() && terminal_.waiting() < before);
  if (error_ == 0 && terminal_.is_behind()) return give_up(patience);
  if (error_ != 0 && !reader_closed(fd_, error_))
    throw EnvironmentError("the output is incomplete: " + message() + "; free some space");
}

void Console::give_up(std::chrono::milliseconds patience) {
  print_to_stderr(fmt::format("gradring train: standard output was not read for {} s: its last {} bytes are dropped\n",
                              std::chrono::duration<double>(patience).count(), terminal_.waiting()));
  error_ = ETIMEDOUT;
  terminal_.replace_waiting("");
}

std::string Console::message() const {
  return "cannot write standard output: " + std::generic_category().message(error_);
}

}  // namespace gradring::train
