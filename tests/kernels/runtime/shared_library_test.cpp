// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/shared_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace gradring {
namespace {

using testing::HasSubstr;

TEST(SharedLibrary, FindsFunctionsByName) {
  const SharedLibrary library("libm.so.6", {});
  double (*cosine)(double) = nullptr;
  library.find("cos", cosine);
  EXPECT_EQ(cosine(0), 1);
  EXPECT_THAT(library.path(), HasSubstr("libm.so.6"));
}

TEST(SharedLibrary, SaysWhatIsMissing) {
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

TEST(SharedLibrary, SaysWhyOneThatIsThereDoesNotLoad) {
  const tests::TempFolder folder;
  folder.write("libbroken.so", tests::Bytes{'n', 'o'});
  try {
    const SharedLibrary library("libbroken.so", {folder.path()});
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr((folder.path() / "libbroken.so").string()));
  }
}

TEST(NvidiaLibraryFolders, AreThoseThatVariablesName) {
  ::setenv("CUDNN_PATH", "/elsewhere/cudnn", 1);
  EXPECT_THAT(nvidia_library_folders(), testing::Contains(std::filesystem::path("/elsewhere/cudnn/lib")));
  ::unsetenv("CUDNN_PATH");
}

}  // namespace
}  // namespace gradring
