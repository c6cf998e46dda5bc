// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gradring::train {

/// The launcher's own stdout or stderr, behind a queue. A reader that pauses (Ctrl-S, a pager) makes the workers wait whose
/// lines go there, and not the launcher, which has signals and deadlines to look after.
class Terminal {
 public:
  explicit Terminal(int fd) : fd_(fd) {}

  /// Writes what there is room for now; the rest waits. What can no longer be written is dropped.
  void write(std::string_view text);
  /// Whether text waits: nothing more is to be taken from workers until it is gone.
  bool is_behind() const { return !waiting_.empty(); }
  /// Writable when there is something to do for catch_up(); -1 while nothing waits.
  int fd() const { return is_behind() ? fd_ : -1; }
  /// Goes on with what waits. Does not wait itself.
  void catch_up();
  /// Waits for the reader until all is written, as any program does at its end, or until `interrupt` is readable.
  void finish(int interrupt);

 private:
  int fd_;
  std::string waiting_;
};

}  // namespace gradring::train
