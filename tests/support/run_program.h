// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace gradring::tests {

/// A program to run as a process of its own.
struct ProgramSpec {
  std::vector<std::string> command;  ///< a path, and its arguments
  std::filesystem::path folder;      ///< where it runs; also its TMPDIR
  /// Beside what this process has; but of RANK and the like, of GRADRING_* and XDG_RUNTIME_DIR, it hears only what
  /// stands here.
  std::vector<std::pair<std::string, std::string>> variables;
};

/// How it ended and what it wrote.
struct ProgramEnd {
  int code = 0;  ///< its exit code, 128 + n if signal n ended it
  std::string out;
  std::string err;
};

/// A program that runs beside this process. Its stdin is empty.
class RunningProgram {
 public:
  /// Errors    std::runtime_error if it cannot be started.
  explicit RunningProgram(const ProgramSpec& spec);
  /// Kills it if nobody has waited for its end.
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  pid_t pid() const { return pid_; }
  /// Blocks until it has ended; what takes longer than the deadline is killed, and comes back as 128 + SIGKILL.
  ProgramEnd wait(std::chrono::seconds patience = std::chrono::seconds(120));

 private:
  std::FILE* out_;
  std::FILE* err_;
  pid_t pid_ = -1;
};

/// Runs a program to its end.
ProgramEnd run_program(const ProgramSpec& spec);

}  // namespace gradring::tests
