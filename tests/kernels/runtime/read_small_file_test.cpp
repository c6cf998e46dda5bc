// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/read_small_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "kernels/runtime/unique_fd.h"
#include "tests/support/temp_folder.h"

namespace gradring {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class ReadSmallFile : public ::testing::Test {
 protected:
  std::string refusal(const std::filesystem::path& path, std::size_t most_bytes = 100) const {
    try {
      read_small_file(path, most_bytes, milliseconds(50));
    } catch (const ReadError& error) {
      return error.what();
    }
    return "it was read";
  }

  const tests::TempFolder folder_;
};

TEST_F(ReadSmallFile, ReturnsAllBytesUpToTheLimit) {
  const tests::Bytes bytes(100'000, 'x');
  const auto path = folder_.write("file", bytes);
  EXPECT_EQ(read_small_file(path, bytes.size()), std::string(bytes.begin(), bytes.end()));
  EXPECT_THAT(refusal(path, bytes.size() - 1), HasSubstr("is larger than 99999 bytes"));
  EXPECT_EQ(read_small_file(folder_.write("empty", {}), 0), "");
}

TEST_F(ReadSmallFile, RefusesWhatHasNoEnd) { EXPECT_THAT(refusal("/dev/zero"), HasSubstr("is larger than 100")); }

TEST_F(ReadSmallFile, SaysWhyAFileCannotBeRead) {
  EXPECT_EQ(refusal(folder_.path() / "absent"), "cannot be opened (No such file or directory)");
  EXPECT_EQ(refusal(folder_.path()), "cannot be read (Is a directory)");
}

TEST_F(ReadSmallFile, WaitsForTheWriterOfAPipeAndNoLongerThanItsPatience) {
  const auto path = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(refusal(path), HasSubstr("nothing came for 50 ms"));
  std::thread writer([&] {
    std::this_thread::sleep_for(milliseconds(50));
    const UniqueFd end(::open(path.c_str(), O_WRONLY));
    for (const std::string_view part : {"lr = ", "0.1\n"}) {
      EXPECT_EQ(::write(end.get(), part.data(), part.size()), static_cast<ssize_t>(part.size()));
      std::this_thread::sleep_for(milliseconds(50));
    }
  });
  EXPECT_EQ(read_small_file(path, 100), "lr = 0.1\n");
  writer.join();
}

}  // namespace
}  // namespace gradring
