// SPDX-License-Identifier: Apache-2.0
#include "train/launch/visible_gpus.h"

#include <gtest/gtest.h>

#include "tests/train/launch/running_launcher.h"

namespace gradring::train {
namespace {

TEST(VisibleGpus, AreTheDriversFilesThatAreNotHidden) {
  const TestFolder dev;
  const auto count = [&](std::optional<std::string> visible) {
    return visible_gpus([&](const std::string&) { return visible; }, dev.path());
  };
  EXPECT_EQ(count({}), 0);
  EXPECT_EQ(count("0,1"), 0);
  for (const char* name : {"nvidia0", "nvidia1", "nvidia12", "nvidiactl", "nvidia-uvm", "nvidia", "null"})
    dev.touch(name);
  EXPECT_EQ(count({}), 3);
  EXPECT_EQ(count("1"), 1);
  EXPECT_EQ(count("1,0"), 2);
  EXPECT_EQ(count(""), 0);
  EXPECT_EQ(count("-1"), 0);
  EXPECT_EQ(count("0,-1,1"), 1);
  EXPECT_EQ(count("0,1,2,3,4"), 3);
}

}  // namespace
}  // namespace gradring::train
