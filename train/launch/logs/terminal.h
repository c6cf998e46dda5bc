// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/runtime/deadline.h"
#include "kernels/runtime/file.h"

namespace gradring::train {

/// This process's stdout or stderr behind a queue, so that a paused reader (Ctrl-S, a pager) does not block the
/// process. The launcher makes workers wait while the queue is not empty.
///
/// Errors    none: output that cannot be written (closed pipe, full disk) is dropped, and on_failure called once.
///           There is no SIGPIPE.
class Terminal {
 public:
  explicit Terminal(int fd);

  /// Called with the errno of the first failed write.
  std::function<void(int error)> on_failure{};

  /// Writes as much as possible without blocking and queues the rest.
  void write(std::string_view text);
  /// Whether text is queued: take no more output from workers until it is written.
  bool is_behind() const { return !waiting_.empty(); }
  /// The size of the queue in bytes.
  std::size_t waiting() const { return waiting_.size(); }
  /// Replaces the queue by `text`.
  void replace_waiting(std::string_view text) { waiting_ = text; }
  /// Writable when catch_up() can make progress; -1 while the queue is empty.
  int fd() const { return is_behind() ? fd_ : -1; }
  /// Writes from the queue without blocking.
  void catch_up();
  /// Waits until all is written, or the deadline has passed.
  void finish(const std::optional<Deadline>& deadline);

 private:
  UniqueFd own_;  ///< the same stream, reopened as non-blocking, which must not affect processes that share it
  int fd_;
  std::string waiting_;
  bool failed_ = false;
};

/// Called with the errno when a log file becomes unwritable.
using LogFailure = std::function<void(const std::filesystem::path& file, int error)>;

struct Terminals {
  Terminal out{STDOUT_FILENO}, err{STDERR_FILENO};
  LogFailure on_log_failure{};
};

}  // namespace gradring::train
