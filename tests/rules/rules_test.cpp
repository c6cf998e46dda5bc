// SPDX-License-Identifier: Apache-2.0
// The repository keeps its own rules.
#include "tests/rules/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

namespace gradring::rules {
namespace {

using testing::IsEmpty;

class Repository : public testing::Test {
 protected:
  static void SetUpTestSuite() { tree_ = read_tree(GRADRING_SOURCE_DIR); }
  static inline SourceTree tree_;
};

TEST_F(Repository, IsRead) {
  EXPECT_TRUE(tree_.paths.contains("kernels/runtime/device.h"));
  EXPECT_TRUE(tree_.paths.contains(".ci/run"));
  EXPECT_FALSE(tree_.paths.contains("build/release/CMakeCache.txt"));
}

TEST_F(Repository, IncludesDownwardsOnly) { EXPECT_THAT(include_directions(tree_), IsEmpty()); }
TEST_F(Repository, HasNoCycleOfFolders) { EXPECT_THAT(folder_cycles(tree_), IsEmpty()); }
TEST_F(Repository, HasNoUpwardInclude) { EXPECT_THAT(upward_includes(tree_), IsEmpty()); }
TEST_F(Repository, StatesTheDependenciesOfRooms) { EXPECT_THAT(stated_rooms(tree_), IsEmpty()); }
TEST_F(Repository, KeepsBenchmarksApart) { EXPECT_THAT(bench_includes(tree_), IsEmpty()); }
TEST_F(Repository, DefinesEachTypeOnce) { EXPECT_THAT(repeated_types(tree_), IsEmpty()); }
TEST_F(Repository, IncludesByFullPath) { EXPECT_THAT(include_paths(tree_), IsEmpty()); }
TEST_F(Repository, HasNoShortHeaderOfOneIncluder) { EXPECT_THAT(short_headers(tree_), IsEmpty()); }
TEST_F(Repository, KeepsVendorsBehindTheirDoors) { EXPECT_THAT(vendor_doors(tree_), IsEmpty()); }
TEST_F(Repository, HasNoIfInLogic) { EXPECT_THAT(conditional_compilation(tree_), IsEmpty()); }
TEST_F(Repository, DeclaresSharedMemoryCheckably) { EXPECT_THAT(raw_shared_memory(tree_), IsEmpty()); }
TEST_F(Repository, HasDeviceCodeInDeviceSources) { EXPECT_THAT(device_code(tree_), IsEmpty()); }
TEST_F(Repository, CountsProcessorsInOnePlace) { EXPECT_THAT(processor_counts(tree_), IsEmpty()); }
TEST_F(Repository, GuardsItsHeaders) { EXPECT_THAT(headers_once(tree_), IsEmpty()); }
TEST_F(Repository, NamesItsLicenceOnTop) { EXPECT_THAT(licence_lines(tree_), IsEmpty()); }
TEST_F(Repository, NamesNoPathOfOneMachine) { EXPECT_THAT(machine_paths(tree_), IsEmpty()); }
TEST_F(Repository, EscapesWhatItPrints) { EXPECT_THAT(unescaped_output(tree_), IsEmpty()); }
TEST_F(Repository, UsesNoRetiredWords) { EXPECT_THAT(retired_words(tree_), IsEmpty()); }
TEST_F(Repository, RunsNoCtestThatPassesWithoutTests) { EXPECT_THAT(ctest_commands(tree_), IsEmpty()); }
TEST_F(Repository, WrapsItsMarkdown) { EXPECT_THAT(markdown_widths(tree_), IsEmpty()); }
TEST_F(Repository, NamesFilesThatAreThere) { EXPECT_THAT(documented_paths(tree_), IsEmpty()); }
TEST_F(Repository, HasTheFoldersOfTheDesign) { EXPECT_THAT(settled_folders(tree_), IsEmpty()); }

TEST_F(Repository, KeepsItsFilesShort) {
  for (const SourceFile& file : tree_.files)
    if (file.is_cpp() && file.text.size() > 200) std::cout << file.text.size() << " lines: " << file.path << "\n";
  EXPECT_THAT(file_lengths(tree_), IsEmpty());
}

}  // namespace
}  // namespace gradring::rules
