// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/file_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include "comm/transport/error.h"
#include "kernels/base/file.h"
#include "tests/support/no_more_files.h"
#include "tests/support/temp_folder.h"

namespace gradring::comm {
namespace {

using ::testing::HasSubstr;

class FileStoreTest : public ::testing::Test {
 protected:
  tests::TempFolder parent_;
  std::filesystem::path directory_ = parent_.path() / "store";
  FileStore store_{directory_, std::chrono::milliseconds(30)};
};

TEST_F(FileStoreTest, ReportsWriteFailuresAsDeviceError) {
  std::filesystem::remove(directory_);
  try {
    store_.set("key", "value");
    FAIL() << "the directory does not exist";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the store cannot write in " + directory_.string() + ": No such file"));
  }
}

TEST_F(FileStoreTest, ReportsAnOpenFailureInsteadOfAnUnsetKey) {
  store_.set("key", "value");
  std::string message;
  try {
    const tests::NoMoreFiles limit;
    store_.get("key");
  } catch (const DeviceError& error) {
    message = error.what();
  }
  EXPECT_THAT(message, HasSubstr("key-key: Too many open files"));
  EXPECT_EQ(store_.get("key"), "value");
}

TEST_F(FileStoreTest, AddTimesOutOnAHeldLock) {
  store_.add("count", 1);
  {
    const UniqueFd stuck(::open((directory_ / "lock").c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::flock(stuck.get(), LOCK_EX), 0);
    EXPECT_THROW(store_.add("count", 1), Timeout);
  }
  EXPECT_EQ(store_.add("count", 1), 2);
}

}  // namespace
}  // namespace gradring::comm
