// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/runtime/deadline.h"
#include "kernels/runtime/unique_fd.h"

namespace gradring::train {

/// This process's stdout or stderr, behind a queue. A reader that pauses (Ctrl-S, a pager) does not block the process, which
/// has signals and deadlines to look after; a launcher makes those workers wait whose lines go there.
///
/// Errors    none: what can no longer be written, for the reader is gone or the disk is full, is dropped, and on_failure
///           hears of it once. There is no SIGPIPE.
class Terminal {
 public:
  explicit Terminal(int fd);

  /// Who is told, by its errno, that a write has failed: at the first one.
  std::function<void(int error)> on_failure{};

  /// Writes what there is room for now; the rest waits.
  void write(std::string_view text);
  /// Whether text waits: nothing more is to be taken from workers until it is gone.
  bool is_behind() const { return !waiting_.empty(); }
  /// How much of it, in bytes.
  std::size_t waiting() const { return waiting_.size(); }
  /// Drops what waits, for `text` in its place.
  void replace_waiting(std::string_view text) { waiting_ = text; }
  /// Writable when there is something to do for catch_up(); -1 while nothing waits.
  int fd() const { return is_behind() ? fd_ : -1; }
  /// Goes on with what waits. Does not wait itself.
  void catch_up();
  /// Waits for the reader until all is written, or the deadline has passed.
  void finish(const std::optional<Deadline>& deadline);

 private:
  UniqueFd own_;  ///< the same stream, not blocking: the launcher's may be shared with others, who would be surprised
  int fd_;
  std::string waiting_;
  bool failed_ = false;
};

/// Both of them.
struct Terminals {
  Terminal out{STDOUT_FILENO}, err{STDERR_FILENO};
};

}  // namespace gradring::train
