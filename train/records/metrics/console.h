// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "train/options/terminal.h"

namespace gradring::train {

/// Standard output of a command that continues without it: the reader of a pipe may exit (`| head -3`), a terminal may
/// be closed, a disk may be full. Reports the first failed write once and drops all later text. Bypasses stdio. Does
/// not block if the reader pauses (Ctrl-S, a pager): the text waits in memory. The first Console makes this process
/// ignore SIGPIPE.
///
/// Threads   one at a time.
/// Errors    none, except in finish().
/// Example   tests/train/records/metrics/console_test.cpp
class Console {
 public:
  /// Receives the message: "cannot write standard output: Broken pipe".
  using Report = std::function<void(const std::string& message)>;

  explicit Console(int fd = STDOUT_FILENO);
  /// Waits up to one second for a reader that pauses.
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  int fd() const { return fd_; }
  void write(std::string_view text);
  /// Sets the function that is called once with the error message; immediately if a write has already failed. An empty
  /// function removes it.
  void on_failure(Report report);
  /// Waits until the reader has taken everything. If it takes nothing for `patience`, drops the rest and says so on
  /// stderr.
  ///
  /// Errors    EnvironmentError if text was lost for another reason than the reader, such as a full disk.
  void finish(std::chrono::milliseconds patience = std::chrono::seconds(10));

 private:
  void give_up(std::chrono::milliseconds patience);
  std::string message() const;

  int fd_;
  Terminal terminal_;
  int error_ = 0;  // errno of the write that failed
  Report report_;
};

}  // namespace gradring::train
