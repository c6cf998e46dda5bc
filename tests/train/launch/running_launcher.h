// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace gradring::train {

/// A folder for one test: marks and environments that workers write, and, as TMPDIR, the folders of runs.
class TestFolder {
 public:
  const std::filesystem::path& path() const { return folder_.path(); }
  /// The entry in the environment by which everything started here can be found.
  std::string mark() const { return "TMPDIR=" + path().string(); }
  std::string text(const std::string& name) const;
  void touch(const std::string& name) const;
  /// The folders of runs that are there now.
  std::vector<std::string> run_folders() const;

 private:
  tests::TempFolder folder_{"/tmp"};  // a TMPDIR may be too long for a run folder
};

/// `launch_probe args...` as a process of its own, started in the folder. When it goes, the launcher is killed if it
/// still runs.
class RunningLauncher {
 public:
  /// Each of `ignored` is a signal that the launcher finds ignored, as after nohup or in the background of a script.
  RunningLauncher(const TestFolder& folder, const std::vector<std::string>& args, const std::vector<int>& ignored = {},
                  std::vector<std::string> variables = {});
  ~RunningLauncher();
  RunningLauncher(const RunningLauncher&) = delete;
  RunningLauncher& operator=(const RunningLauncher&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal) const;
  /// Waits until the worker has obeyed "mark=name", and returns the pid that it left.
  pid_t await_mark(const std::string& name, int rank) const;
  /// Waits for its end; the exit code, -n if signal n killed it, -1000 if it did not end in time.
  int wait();
  /// What it and its workers have written to stderr until now.
  std::string errors() const { return folder_.text("stderr"); }

 private:
  const TestFolder& folder_;
  pid_t pid_ = -1;
  bool ended_ = false;
};

}  // namespace gradring::train
