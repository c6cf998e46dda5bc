// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/deadline.h"
#include "train/launch/logs/log_spec.h"
#include "train/options/terminal.h"

namespace gradring::train {

/// One stream of one worker on a terminal, each line with the worker's prefix. Complete lines are written at once, an
/// incomplete one (a prompt, a progress bar) after 100 ms. No line has text of two workers: text of another ends an
/// incomplete line, and what follows it begins a new one. An incomplete line ends another incomplete one only after
/// that stood for a second, so that progress bars of several workers do not fill the terminal. A carriage return begins
/// a line, too, so the prefix follows it.
class TeedLines {
 public:
  /// The terminal must outlive it.
  TeedLines(LinePrefix prefix, Terminal& terminal);

  void take(std::string_view text);
  /// When to call show(); unset if there is nothing to show.
  std::optional<Deadline> due() const;
  /// Writes the incomplete line if it is due.
  void show();
  /// Writes what is left and ends the line.
  void finish();

 private:
  enum class At : unsigned char { line_start, return_, inside };

  void write(std::string_view text);

  LinePrefix prefix_;
  Terminal* terminal_;
  int writer_;
  At at_ = At::line_start;
  std::string incomplete_;       ///< not yet written
  std::optional<Deadline> due_;  ///< of it
};

}  // namespace gradring::train
