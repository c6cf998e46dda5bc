// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace gradring::train {

/// A folder for one test: the TMPDIR and working folder of launchers and workers.
class TestFolder {
 public:
  const std::filesystem::path& path() const { return folder_.path(); }
  /// The environment entry that identifies all processes started here.
  std::string mark() const { return "TMPDIR=" + path().string(); }
  std::string text(const std::string& name) const;
  void touch(const std::string& name) const;
  /// The current run folders.
  std::vector<std::string> run_folders() const;

 private:
  tests::TempFolder folder_{"/tmp"};  // a TMPDIR may be too long for a run folder
};

/// The process `launch_probe args...` in the folder. The destructor kills it.
class RunningLauncher {
 public:
  /// The launcher starts with the signals `ignored` ignored, as under nohup, and inherits neither XDG_RUNTIME_DIR nor a
  /// token.
  RunningLauncher(const TestFolder& folder, const std::vector<std::string>& args, const std::vector<int>& ignored = {},
                  std::vector<std::string> variables = {});
  ~RunningLauncher();
  RunningLauncher(const RunningLauncher&) = delete;
  RunningLauncher& operator=(const RunningLauncher&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal) const;
  /// Waits until the worker has performed "mark=name", and returns its pid.
  pid_t await_mark(const std::string& name, int rank) const;
  /// Waits for the end. Returns the exit code, -n if signal n killed it, or -1000 after 30 s.
  int wait();
  /// The stderr of the launcher and its workers until now.
  std::string errors() const { return folder_.text("stderr"); }

 private:
  const TestFolder& folder_;
  pid_t pid_ = -1;
  bool ended_ = false;
};

}  // namespace gradring::train
