// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <thread>

#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "kernels/base/shared_library.h"
#include "kernels/runtime/cpu_level.h"
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

TEST_F(ReadSmallFile, RejectsEndlessFiles) { EXPECT_THAT(refusal("/dev/zero"), HasSubstr("is larger than 100")); }

TEST_F(ReadSmallFile, SaysWhyAFileCannotBeRead) {
  EXPECT_EQ(refusal(folder_.path() / "absent"), "cannot be opened (No such file or directory)");
  EXPECT_EQ(refusal(folder_.path()), "cannot be read (Is a directory)");
}

TEST_F(ReadSmallFile, WaitsForAPipesWriterUpToItsPatience) {
  const auto path = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(refusal(path), HasSubstr("sent nothing for 50 ms"));
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

using testing::HasSubstr;

TEST(SharedLibrary, FindsFunctionsByName) {
  const SharedLibrary library("libm.so.6", {});
  double (*cosine)(double) = nullptr;
  library.find("cos", cosine);
  EXPECT_EQ(cosine(0), 1);
  EXPECT_THAT(library.path(), HasSubstr("libm.so.6"));
}

TEST(SharedLibrary, ReportsAMissingLibrary) {
  try {
    const SharedLibrary library("libnobody_has_this.so.1", {"/nowhere"});
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("libnobody_has_this.so.1"));
  }
  const SharedLibrary library("libm.so.6", {});
  void (*nothing)() = nullptr;
  EXPECT_THROW(library.find("no_such_function", nothing), DeviceError);
}

TEST(SharedLibrary, ReportsWhyAnExistingLibraryDoesNotLoad) {
  const tests::TempFolder folder;
  folder.write("libbroken.so", tests::Bytes{'n', 'o'});
  try {
    const SharedLibrary library("libbroken.so", {folder.path()});
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr((folder.path() / "libbroken.so").string()));
  }
}

TEST(NvidiaLibraryFolders, FollowEnvironmentVariables) {
  ::setenv("CUDNN_PATH", "/elsewhere/cudnn", 1);
  EXPECT_THAT(nvidia_library_folders(), testing::Contains(std::filesystem::path("/elsewhere/cudnn/lib")));
  ::unsetenv("CUDNN_PATH");
}

}  // namespace
}  // namespace gradring

namespace gradring::kernels {
namespace {

using testing::ThrowsMessage;

std::string_view name(CpuLevel level) { return cpu_level_name(level); }

TEST(CpuLevel, DefaultsToTheHighestSupported) {
  for (const CpuLevel level : cpu_levels()) EXPECT_EQ(choose_cpu_level(level, std::nullopt), level);
}

TEST(CpuLevel, AcceptsEveryLowerLevel) {
  for (const CpuLevel supported : cpu_levels())
    for (const CpuLevel requested : cpu_levels()) {
      if (requested > supported) continue;
      EXPECT_EQ(choose_cpu_level(supported, name(requested)), requested);
    }
}

TEST(CpuLevel, RejectsOneThatTheProcessorLacks) {
  const CpuLevel lowest = cpu_levels().front();
  const CpuLevel highest = cpu_levels().back();
  if (lowest == highest) GTEST_SKIP() << "this build has one level";
  EXPECT_THAT([&] { choose_cpu_level(lowest, name(highest)); },
              ThrowsMessage<DeviceError>(HasSubstr("this processor supports at most " + std::string(name(lowest)))));
}

TEST(CpuLevel, RejectsAnUnknownNameAndListsTheLevels) {
  EXPECT_THAT([] { choose_cpu_level(cpu_levels().back(), "x86-64-v9"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("Levels: " + std::string(name(CpuLevel::baseline)))));
}

TEST(CpuLevel, OfThisProcessIsALevelOfTheBuild) {
  EXPECT_THAT(cpu_levels(), testing::Contains(cpu_level()));
  EXPECT_LE(cpu_level(), supported_cpu_level());
}

TEST(CpuLevel, HasAUniqueName) {
  for (const CpuLevel level : cpu_levels()) EXPECT_FALSE(name(level).empty());
  for (const CpuLevel a : cpu_levels())
    for (const CpuLevel b : cpu_levels()) EXPECT_EQ(name(a) == name(b), a == b);
}

}  // namespace
}  // namespace gradring::kernels
