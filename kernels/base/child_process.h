// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/deadline.h"
#include "kernels/base/file.h"

namespace gradring {

/// A program to start.
struct ChildCommand {
  std::vector<std::string> words;  ///< the program, a path or a name along PATH, and its arguments
  std::vector<std::pair<std::string, std::string>> variables{};  ///< set in its environment, on top of ours
  bool keep_stderr = false;                                      ///< whether its stderr goes to ours or is dropped
  int error_fd = -1;                                             ///< takes its stderr, if there is one
};

/// Another program, such as a peer to measure, with its stdin and stdout. It is killed when the object, or the
/// thread that made it, ends.
///
/// Threads   one thread at a time.
class ChildProcess {
 public:
  /// Errors    DeviceError if the system has no more processes or files to give. A program that cannot be executed ends
  ///           at once.
  explicit ChildProcess(const ChildCommand& command);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Sends a line; false if the program no longer reads.
  bool write_line(std::string_view line);
  /// The next line, without its end.
  ///
  /// Errors    DeviceError if the program ends, or the deadline passes, before it came.
  std::string read_line(Deadline deadline);
  /// Reads some bytes behind the last line, at least one.
  ///
  /// Returns   their number; 0 if the program has closed its stdout.
  /// Errors    DeviceError if the deadline passes before.
  std::size_t read(std::span<char> out, Deadline deadline);
  bool running();
  /// Its process id; -1 once it has ended and was reaped.
  pid_t id() const { return pid_; }
  /// Waits for the end of the program; true if it returned 0. Called once.
  bool wait();

 private:
  std::size_t read_socket(std::span<char> out, Deadline deadline);

  pid_t pid_ = -1;   // -1 once it has ended and was reaped
  UniqueFd socket_;  // its stdin and stdout in one
  std::string unread_;
};

}  // namespace gradring
