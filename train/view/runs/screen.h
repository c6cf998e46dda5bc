// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <termios.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <vector>

#include "kernels/base/file.h"
#include "train/view/runs/live_frame.h"

namespace gradring::train {

/// A terminal that a program fills and keeps up to date. While it lives, it shows the terminal's alternate screen, keys
/// are not echoed, and the signals TSTP, CONT and WINCH are received by wait(). The destructor puts everything back.
///
/// INT, TERM, HUP and QUIT put the terminal back and end the process at any time, whatever it is doing or waiting for:
/// with exit code 0 after INT (Ctrl-C), 128 + n after another. One that was ignored before stays ignored.
///
/// Threads   one; no other thread may take the signals. One Screen at a time.
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
    quit,    ///< q
  };
  /// Blocks. Ctrl-Z stops the process, with the terminal as it was.
  Wake wait(std::chrono::milliseconds interval);
  /// Replaces what is shown. Lines must fit the terminal.
  void draw(const std::vector<FrameLine>& lines);

 private:
  void enter();
  void leave();
  Wake on_signal();

  int input_;
  int output_;
  bool styled_;
  termios before_{};
  bool has_keys_;                                      // after before_, which it fills
  std::array<struct sigaction, 4> handlers_before_{};  // of the signals that end the process
  sigset_t signals_{};
  sigset_t mask_before_{};
  UniqueFd signal_fd_;
};

}  // namespace gradring::train
