// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <termios.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/runtime/file.h"
#include "train/runs/live_frame.h"

namespace gradring::train {

/// A terminal that a program fills and keeps up to date. While it lives, it shows the terminal's alternate screen, keys
/// are not echoed, and the signals INT, TERM, HUP, QUIT, TSTP, CONT and WINCH are received by wait(). The destructor
/// puts everything back.
///
/// Threads   one; no other thread may take the signals.
class Screen {
 public:
  /// `input` may be no terminal: then no keys are read. `styled`: whether lines are coloured.
  ///
  /// Errors    EnvironmentError if signals cannot be received; nothing has changed then.
  Screen(int input, int output, bool styled);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  enum class Wake : std::uint8_t {
    time,    ///< the interval is over
    redraw,  ///< the terminal has another size, or the program was continued
    quit,    ///< q, Ctrl-C, or a signal that ends programs
  };
  /// Blocks. Ctrl-Z stops the process, with the terminal as it was.
  Wake wait(std::chrono::milliseconds interval);
  /// The signal other than SIGINT (Ctrl-C) that made wait() return `quit`; 0: none.
  int ending_signal() const { return ending_signal_; }
  /// Replaces what is shown. Lines must fit the terminal.
  void draw(const std::vector<FrameLine>& lines);

 private:
  void enter();
  void leave();
  Wake on_signal();

  int input_;
  int output_;
  bool styled_;
  bool has_keys_ = false;
  termios before_{};
  sigset_t signals_{};
  sigset_t mask_before_{};
  UniqueFd signal_fd_;
  int ending_signal_ = 0;
};

}  // namespace gradring::train
