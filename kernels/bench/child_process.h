// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/runtime/deadline.h"
#include "kernels/runtime/unique_fd.h"

namespace gradring::kernels::bench {

/// What is started beside us.
struct ChildCommand {
  std::vector<std::string> words;  ///< the program, a path or a name along PATH, and its arguments
  std::vector<std::pair<std::string, std::string>> variables{};  ///< set in its environment over our own
  bool keep_stderr = false;  ///< whether what it says on stderr reaches ours; else it is dropped
};

/// Another program that we talk to in lines, through its stdin and stdout: a peer to be measured against. It is killed
/// when the object, or the thread that made it, ends.
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

  /// Sends a line; false if nobody reads it any more.
  bool write_line(std::string_view line);
  /// The next line, without its end.
  ///
  /// Errors    DeviceError if the program ends, or the deadline passes, before it came.
  std::string read_line(Deadline deadline);

 private:
  pid_t pid_ = -1;
  UniqueFd socket_;  // its stdin and stdout in one
  std::string unread_;
};

}  // namespace gradring::kernels::bench
