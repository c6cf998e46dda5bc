// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <functional>
#include <string>
#include <string_view>

#include "train/launch/logs/terminal.h"

namespace gradring::train {

/// Standard output of a command that goes on without it: a reader may close its end of a pipe (`| head -3`), a terminal may be
/// closed, a disk may be full. The first write that fails is reported once; the text after it is dropped. Writes past stdio's
/// buffers, and as much as the reader takes: a reader that pauses (Ctrl-S, a pager) does not stop training. From the first Console
/// on, SIGPIPE is ignored in this process.
///
/// Threads   one at a time.
/// Errors    none, except in finish().
/// Example   tests/train/report/console_test.cpp
class Console {
 public:
  /// Takes the message: "cannot write standard output: Broken pipe".
  using Report = std::function<void(const std::string& message)>;

  explicit Console(int fd = STDOUT_FILENO);
  /// Waits a moment for a reader that pauses.
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  int fd() const { return fd_; }
  void write(std::string_view text);
  /// Sets the function that is called once with the error message; at once if a write has already failed. An empty function
  /// removes it.
  void on_failure(Report report);
  /// Waits until the reader has taken everything.
  ///
  /// Errors    EnvironmentError if text was lost for another reason than a closed reader: a full disk.
  void finish();

 private:
  std::string message() const;

  int fd_;
  Terminal terminal_;
  int error_ = 0;  // errno of the write that failed
  Report report_;
};

}  // namespace gradring::train
