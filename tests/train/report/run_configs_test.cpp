// SPDX-License-Identifier: Apache-2.0
#include "train/report/run_configs.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temp_folder.h"
#include "tests/train/support/text_of.h"

namespace gradring::train {
namespace {

TEST(RunConfigs, AreNumberedAndNeverOverwritten) {
  const tests::TempFolder folder;
  const auto& run = folder.path();
  std::ofstream(first_config(run)) << "a";
  EXPECT_EQ(newest_config(run), run / "config.resolved.toml");
  EXPECT_EQ(write_next_config(run, "b"), run / "config.resolved-2.toml");
  EXPECT_EQ(write_next_config(run, "c"), run / "config.resolved-3.toml");
  EXPECT_EQ(newest_config(run), run / "config.resolved-3.toml");
  EXPECT_EQ(tests::text_of(first_config(run)), "a");
  EXPECT_EQ(tests::text_of(run / "config.resolved-2.toml"), "b");
}

TEST(RunConfigs, BeginWithTheFirstWhereItWasRemoved) {
  const tests::TempFolder folder;
  EXPECT_EQ(newest_config(folder.path()), first_config(folder.path()));
  EXPECT_EQ(write_next_config(folder.path(), "a"), first_config(folder.path()));
}

TEST(RunConfigs, OfTwoDigitsComeAfterThoseOfOne) {
  const tests::TempFolder folder;
  const auto& run = folder.path();
  for (const char* name : {"config.resolved-9.toml", "config.resolved-10.toml", "config.resolved-x.toml",
                           "config.resolved-99.toml.tmp", "config.resolved-11a.toml"})
    std::ofstream(run / name) << name;
  EXPECT_EQ(newest_config(run), run / "config.resolved-10.toml");
  EXPECT_EQ(write_next_config(run, "d"), run / "config.resolved-11.toml");
}

}  // namespace
}  // namespace gradring::train
