// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "train/launch/logs/worker_output.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

class LogFolderTest : public ::testing::Test {
 protected:
  tests::TempFolder place_;
  LogSpec spec_{.folder = place_.path()};
};

/// A launcher that starts its workers again must not truncate the files of another, which has the path by then.
TEST_F(LogFolderTest, IsFoundWhereItWasMoved) {
  LogFolder first(spec_, "id");
  EXPECT_EQ(first.worker_folder(0, 0), place_.path() / "id" / "attempt_0" / "0");
  fs::rename(place_.path() / "id", place_.path() / "old");
  LogFolder second(spec_, "id");
  EXPECT_EQ(second.worker_folder(1, 0), place_.path() / "id" / "attempt_1" / "0");
  EXPECT_EQ(first.worker_folder(1, 0), fs::canonical(place_.path()) / "old" / "attempt_1" / "0");
}

TEST_F(LogFolderTest, IsMadeAnewIfItWasRemoved) {
  LogFolder first(spec_, "id");
  fs::remove_all(place_.path() / "id");
  const LogFolder second(spec_, "id");
  EXPECT_EQ(first.worker_folder(1, 0), place_.path() / "id_2" / "attempt_1" / "0");
}

}  // namespace
}  // namespace gradring::train
