// SPDX-License-Identifier: Apache-2.0
#include "train/app/rank/run_output.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temp_folder.h"

namespace gradring::train {
namespace {

TEST(SharedRunDir, IsFoundByAnyName) {
  const tests::TempFolder folder;
  for (const char* name : {"run", "a run\n", "\xc3\xa4", "\xff\xfe"}) {
    const auto path = folder.path() / name;
    std::filesystem::create_directory(path);
    const std::string identity = identity_of(Directory(path));
    EXPECT_EQ(open_identified(identity).path(), path);
    EXPECT_TRUE(names_identified(path, identity));
    EXPECT_FALSE(names_identified(folder.path(), identity));
  }
}

}  // namespace
}  // namespace gradring::train
