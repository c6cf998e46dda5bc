// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/train/launch/process_table.h"
#include "tests/train/launch/running_launcher.h"

namespace gradring::train {

/// Checks after each test that no process and no run folder is left.
class LauncherFixture : public ::testing::Test {
 protected:
  ~LauncherFixture() override {
    EXPECT_TRUE(eventually([&] { return processes_with(folder_.mark()).empty(); })) << "processes are left";
    EXPECT_TRUE(eventually([&] { return folder_.run_folders().empty(); })) << "a folder is left";
  }

  /// Runs `launch_probe words...` and returns the exit code.
  int run(const std::vector<std::string>& words, const std::vector<std::string>& variables = {}) {
    RunningLauncher launcher(folder_, words, {}, variables);
    return launcher.wait();
  }
  std::string errors() const { return folder_.text("stderr"); }

  TestFolder folder_;
};

}  // namespace gradring::train
