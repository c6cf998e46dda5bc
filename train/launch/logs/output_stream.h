// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/runtime/unique_fd.h"
#include "train/launch/logs/line_prefix.h"
#include "train/launch/logs/terminal.h"

namespace gradring::train {

/// Where one stream of one worker goes.
struct OutputRoute {
  std::optional<LinePrefix> prefix{};  ///< to the terminal, line by line, behind this
  std::filesystem::path file{};        ///< into this file; empty: into none
  bool hidden = false;                 ///< where there is neither: away, and not to the launcher's own stream
};

/// One stream of one worker, on its way. What goes to the terminal passes through the launcher; what goes into a file
/// alone does not, nor what goes nowhere.
///
/// Errors    DeviceError if the file cannot be opened or the system gives no descriptor. A file that can no longer be
///           written is given up with a word on the terminal: the worker goes on.
class OutputStream {
 public:
  /// `terminal` is the launcher's own stream of that kind, which outlives this one.
  OutputStream(const OutputRoute& route, Terminal& terminal);

  /// What the worker gets as this stream; -1 if it keeps the launcher's.
  int worker_end() const { return worker_end_.get(); }
  /// To be called once the worker has been started.
  void close_worker_end() { worker_end_.reset(); }
  /// Readable when there is something to pass on; -1 if nothing passes through the launcher, or the terminal is behind.
  int fd() const { return terminal_->is_behind() ? -1 : launcher_end_.get(); }
  /// Passes on what is there, until the terminal is behind. Does not wait.
  void pass_on();
  /// The worker has ended: passes on the rest, of which the terminal may have to keep some.
  void finish();

 private:
  bool read_once();
  void take(std::string_view text);
  void write_line(std::string_view line);

  OutputRoute route_;
  Terminal* terminal_;
  UniqueFd worker_end_;
  UniqueFd launcher_end_;
  UniqueFd file_;
  std::string unfinished_;  ///< the begin of a line
};

}  // namespace gradring::train
