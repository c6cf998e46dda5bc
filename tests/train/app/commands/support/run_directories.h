// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring::tests {

/// The three ways to start a training of `words`, which begin with "train".
inline std::map<std::string, Words> ways_to_start(const Words& words) {
  return {{"alone", words}, {"spawned", joined(words, {"--nprocs", "2"})}, {"launched", launched(words)}};
}

/// A workplace with a run in `run`.
class RunDirectories : public ::testing::Test {
 protected:
  bool waits_for(const std::function<bool()>& condition) const {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition() && std::chrono::steady_clock::now() < patience)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return condition();
  }
  /// Whether a process has ended, without waiting for it.
  static bool has_ended(pid_t pid) {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
  }
  /// That a training in `run` has made steps.
  bool trains(const std::filesystem::path& run) const {
    return waits_for([&] { return !records_of(run / "metrics.jsonl").empty(); });
  }
  nlohmann::json summary_in(const std::filesystem::path& run) const {
    return tests::try_parse_json(text_of(run / "summary.json"));
  }
  /// Every file below a folder, with its bytes and when they were written; of a link, where it leads.
  std::map<std::string, std::pair<std::string, std::filesystem::file_time_type>> snapshot(
      const std::filesystem::path& folder) const {
    std::map<std::string, std::pair<std::string, std::filesystem::file_time_type>> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      files[entry.path().string()] =
          entry.is_symlink()
              ? std::pair(std::filesystem::read_symlink(entry.path()).string(), std::filesystem::file_time_type())
              : std::pair(entry.is_regular_file() ? text_of(entry.path()) : "",
                          std::filesystem::last_write_time(entry.path()));
    return files;
  }
  std::filesystem::path run() const { return place_.path("run"); }
  std::filesystem::path step_folder(int step) const { return run() / "checkpoints" / ("step-" + std::to_string(step)); }
  void expect_config_is_accepted(const std::string& config) const {
    const ProgramEnd end = place_.run({"train", "--config", config, "--run-dir", "another", "--dry-run"});
    EXPECT_EQ(end.code, 0) << config << ": " << end.err;
  }

  Workplace place_;
};

}  // namespace gradring::tests
