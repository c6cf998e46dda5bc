// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/own_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/datasets/open_dataset.h"
#include "data/files/byte_source.h"
#include "tests/data/support/message_of.h"
#include "tests/data/support/written_idx.h"
#include "tests/support/temp_folder.h"

namespace gradring::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two training samples of 1 x 2 pixels, of the classes 3 and 1, and a test sample.
void write_set(const tests::TempFolder& folder, const std::string& prefix, const char* test = "t10k") {
  folder.write(prefix + "train-images-idx3-ubyte", tests::idx_bytes({2, 1, 2}, {1, 2, 3, 4}));
  folder.write(prefix + "train-labels-idx1-ubyte", tests::idx_bytes({2}, {3, 1}));
  folder.write(prefix + test + "-images-idx3-ubyte", tests::idx_bytes({1, 1, 2}, {5, 6}));
  folder.write(prefix + test + "-labels-idx1-ubyte", tests::idx_bytes({1}, {2}));
}

TEST(OwnIdx, HasTheClassesOfItsTrainingLabels) {
  const tests::TempFolder folder;
  write_set(folder, "");
  const auto train = open_dataset("idx", Split::train, folder.path());
  const auto test = open_dataset("idx", Split::test, folder.path());
  EXPECT_THAT(train->class_names(), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(train->pixels(1), ElementsAre(3, 4));
  EXPECT_EQ(train->label(0), 3);
  EXPECT_EQ(test->classes(), 4);
  EXPECT_EQ(test->label(0), 2);
  EXPECT_EQ(facts_of(DatasetSpec{.name = "idx", .data_dir = folder.path()}), facts_of(*train));
}

TEST(OwnIdx, MayHaveAPrefixAndNamesOfClasses) {
  const tests::TempFolder folder;
  write_set(folder, "emnist-letters-", "test");
  folder.write("emnist-letters-train-images-idx3-ubyte.gz", tests::gzipped(tests::idx_bytes({1, 1, 1}, {0})));
  const std::string names = "none\na\nb\nc\nd\n";
  folder.write("class_names.txt", tests::Bytes(names.begin(), names.end()));
  EXPECT_EQ(open_own_idx(folder.path(), Split::train)->size(), 2) << "plain files come before packed ones";
  EXPECT_EQ(open_own_idx(folder.path(), Split::test)->size(), 1);
  EXPECT_THAT(facts_of_own_idx(folder.path()).class_names, ElementsAre("none", "a", "b", "c", "d"));
}

TEST(OwnIdx, MayBePacked) {
  const tests::TempFolder folder;
  folder.write("train-images.idx3-ubyte.gz", tests::gzipped(tests::idx_bytes({2, 1, 1}, {1, 2})));
  folder.write("train-labels.idx1-ubyte.gz", tests::gzipped(tests::idx_bytes({2}, {0, 1})));
  EXPECT_EQ(open_own_idx(folder.path(), Split::train)->size(), 2);
}

std::string error(const tests::TempFolder& folder, Split split = Split::train) {
  return tests::message_of<DataError>([&] { open_own_idx(folder.path(), split); });
}

TEST(OwnIdx, SaysWhatIsMissingOrAmbiguous) {
  const tests::TempFolder empty, several, no_labels, one_class, other_labels, no_pixels;
  EXPECT_THAT(error(empty), AllOf(HasSubstr("holds no train-images-idx3-ubyte"), HasSubstr("--data-dir")));
  EXPECT_THAT(error(empty, Split::test), HasSubstr("holds no t10k-images-idx3-ubyte"));
  write_set(several, "a-");
  write_set(several, "b-");
  EXPECT_THAT(error(several), AllOf(HasSubstr("holds several data sets, such as a-train-images-idx3-ubyte and b-train"),
                                    HasSubstr("into a folder of its own")));
  no_labels.write("train-images-idx3-ubyte", tests::idx_bytes({1, 1, 1}, {1}));
  EXPECT_THAT(error(no_labels), HasSubstr("but no train-labels-idx1-ubyte"));
  write_set(one_class, "");
  one_class.write("train-labels-idx1-ubyte", tests::idx_bytes({2}, {0, 0}));
  EXPECT_THAT(error(one_class), HasSubstr("has 1 class, expected at least 2"));
  write_set(other_labels, "");
  other_labels.write("t10k-labels-idx1-ubyte", tests::idx_bytes({1}, {9}));
  EXPECT_THAT(error(other_labels, Split::test), HasSubstr("has label 9 in sample 0, but idx has the classes 0 to 3"));
  write_set(no_pixels, "");
  no_pixels.write("train-images-idx3-ubyte", tests::idx_bytes({2, 0, 2}, {}));
  EXPECT_THROW(facts_of_own_idx(no_pixels.path()), DataError);
  EXPECT_THAT(tests::message_of<DataError>([&] { open_own_idx(empty.path() / "absent", Split::train); }),
              HasSubstr("absent: cannot be listed"));
}

}  // namespace
}  // namespace gradring::data
