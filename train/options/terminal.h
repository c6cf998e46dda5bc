// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/deadline.h"
#include "kernels/base/file.h"

namespace gradring::train {

/// This process's stdout or stderr behind a queue, so that a paused reader (Ctrl-S, a pager) does not block the
/// process. The launcher makes workers wait while the queue is not empty.
///
/// Errors    none: output that cannot be written (closed pipe, full disk) is dropped, and on_failure called once.
///           There is no SIGPIPE.
class Terminal {
 public:
  explicit Terminal(int fd);
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// Called with the errno of the first failed write.
  std::function<void(int error)> on_failure{};

  /// Writes as much as possible without blocking and queues the rest. Ends an incomplete line of a writer first.
  void write(std::string_view text);

  /// A new writer of incomplete lines.
  int add_writer() { return ++line_->writers; }
  /// The same as write(), but the text may end within a line, which this writer may continue.
  void write(std::string_view text, int writer);
  /// Whether that writer's line is incomplete and it may continue it.
  bool has_line_of(int writer) const { return line_->writer == writer; }
  /// Since when the line of another writer is incomplete; unset if there is none.
  std::optional<std::chrono::nanoseconds> age_of_other_line(int writer) const;
  /// `other` writes to the same file: its incomplete lines are this terminal's.
  void share_line(Terminal& other) { line_ = other.line_; }

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
  /// The last line, while it is incomplete.
  struct Line {
    int writer = 0;  ///< 0: complete
    int writers = 0;
    Deadline::Clock::time_point since{};
  };

  UniqueFd own_;  ///< the same stream, reopened as non-blocking, which must not affect processes that share it
  int fd_;
  std::string waiting_;
  bool failed_ = false;
  Line own_line_;
  Line* line_ = &own_line_;
};

/// Called with the errno when a log file becomes unwritable.
using LogFailure = std::function<void(const std::filesystem::path& file, int error)>;

struct Terminals {
  /// Both may be one terminal, or one file (2>&1).
  Terminals();

  Terminal out{STDOUT_FILENO}, err{STDERR_FILENO};
  LogFailure on_log_failure{};
};

}  // namespace gradring::train
