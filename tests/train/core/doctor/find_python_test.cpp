// SPDX-License-Identifier: Apache-2.0
#include "train/core/doctor/find_python.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Folders with programs that stand in for Python.
class FindPython : public ::testing::Test {
 protected:
  std::string python(const std::string& folder, const std::string& body) const {
    const auto path = folder_.path() / folder / "python3";
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path.string();
  }
  std::string path(const std::string& folder) const { return (folder_.path() / folder).string(); }
  static VariableLookup variables(const std::string& path, const std::optional<std::string>& chosen = std::nullopt) {
    return [=](const std::string& name) -> std::optional<std::string> {
      if (name == "PATH") return path;
      return name == "GRADRING_PYTHON" ? chosen : std::nullopt;
    };
  }

 private:
  tests::TempFolder folder_;
};

constexpr const char* kHasTorch = "echo torch 9.9";
constexpr const char* kHasNone = "exit 1";

TEST_F(FindPython, TakesTheFirstAlongThePathThatImportsTorch) {
  const std::string bare = python("bare", kHasNone), good = python("good", kHasTorch);
  python("later", kHasTorch);
  const auto search = search_python_with_torch(
      variables(path("missing") + ":" + path("bare") + ":" + path("bare") + ":" + path("good") + ":" + path("later")));
  EXPECT_EQ(search.python, good);
  EXPECT_EQ(search.torch_version, "9.9");
  EXPECT_THAT(search.tried, ElementsAre(HasSubstr(bare)));
  EXPECT_THAT(search.to_string(), HasSubstr("9.9"));
}

TEST_F(FindPython, GradringPythonGoesFirst) {
  python("good", kHasTorch);
  const std::string chosen = python("chosen", kHasTorch);
  EXPECT_EQ(search_python_with_torch(variables(path("good"), chosen)).python, chosen);
}

TEST_F(FindPython, SaysWhatWasTriedAndWhatToDo) {
  const std::string bare = python("bare", kHasNone), other = python("other", "echo hello");
  const auto search = search_python_with_torch(variables(path("bare") + ":" + path("other"), "/nowhere/python3"));
  EXPECT_FALSE(search.python);
  EXPECT_THAT(search.tried, ElementsAre(HasSubstr("/nowhere/python3"), HasSubstr(bare), HasSubstr(other)));
  EXPECT_THAT(search.to_string(), HasSubstr("GRADRING_PYTHON"));
}

TEST_F(FindPython, NoPathIsNoError) { EXPECT_FALSE(search_python_with_torch(variables("")).python); }

}  // namespace
}  // namespace gradring::train
