// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/idx/idx_dataset.h"

#include <gmock/gmock.h>

#include "data/error.h"
#include "tests/data/support/message_of.h"
#include "tests/data/support/written_idx.h"
#include "tests/support/allocated_bytes.h"
#include "tests/support/temp_folder.h"

namespace gradring::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using tests::Bytes;

class IdxDataset : public ::testing::Test {
 protected:
  std::unique_ptr<Dataset> open(const Bytes& images, const Bytes& labels) const {
    return open_idx(
        {.name = "small", .images = folder_.write("images", images), .labels = folder_.write("labels", labels)});
  }
  std::string error(const Bytes& images, const Bytes& labels) const {
    return tests::message_of<DataError>([&] { open(images, labels); });
  }

  const tests::TempFolder folder_;
  const Bytes images_ = tests::idx_bytes({3, 2, 4}, tests::counting(24));
};

TEST_F(IdxDataset, PairsImagesWithLabels) {
  const auto dataset = open(images_, tests::gzipped(tests::idx_bytes({3}, {9, 0, 4})));
  EXPECT_EQ(dataset->name(), "small");
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->shape(), kernels::Shape({2, 4, 1}));
  EXPECT_EQ(dataset->classes(), 10);
  EXPECT_THAT(dataset->get(2).pixels, ::testing::ElementsAre(16, 17, 18, 19, 20, 21, 22, 23));
  EXPECT_EQ(dataset->get(2).label, 4);
}

TEST_F(IdxDataset, RefusesCountsThatDiffer) {
  EXPECT_THAT(error(images_, tests::idx_bytes({2}, {1, 2})),
              AllOf(HasSubstr("labels: holds 2 labels"), HasSubstr("3 images"), HasSubstr("the same source")));
}

/// 64 MB of zeros are 64 KB of gzip.
TEST_F(IdxDataset, ComparesCountsBeforeItTakesMemoryForPixels) {
  const auto images = folder_.write("images", tests::gzipped(tests::idx_bytes({64, 1000, 1000}, Bytes(64'000'000))));
  const auto labels = folder_.write("labels", tests::idx_bytes({3}, {1, 2, 3}));
  const std::size_t before = tests::allocated_bytes();
  tests::reset_peak_allocated_bytes();
  EXPECT_THROW(open_idx({.name = "small", .images = images, .labels = labels}), DataError);
  EXPECT_LT(tests::peak_allocated_bytes() - before, 4u << 20);
}

TEST_F(IdxDataset, RefusesALabelOutOfRange) {
  EXPECT_THAT(error(images_, tests::idx_bytes({3}, {1, 10, 2})),
              AllOf(HasSubstr("sample 1"), HasSubstr("label 10"), HasSubstr("0 to 9")));
}

TEST_F(IdxDataset, RefusesAnEmptySet) {
  EXPECT_THAT(error(tests::idx_bytes({0, 28, 28}, {}), tests::idx_bytes({0}, {})), HasSubstr("holds no images"));
  EXPECT_THAT(error(tests::idx_bytes({3, 0, 28}, {}), tests::idx_bytes({3}, {1, 2, 3})), HasSubstr("holds no images"));
}

TEST_F(IdxDataset, FindsTheFilesInEverySpelling) {
  const tests::TempFolder folder;
  for (const std::string separator : {"-", "."})
    for (const std::string suffix : {"", ".gz"}) {
      const std::filesystem::path below = "set" + separator + suffix;
      const auto images = folder.write(below / ("t10k-images" + separator + "idx3-ubyte" + suffix), {});
      const auto labels = folder.write(below / ("t10k-labels" + separator + "idx1-ubyte" + suffix), {});
      const IdxFiles files = find_idx_files(Split::test, {folder.path(), folder.path() / below}, "fetch it");
      EXPECT_EQ(files.images, images);
      EXPECT_EQ(files.labels, labels);
    }
}

TEST_F(IdxDataset, ListsWhatWasLookedFor) {
  const auto absent = folder_.path() / "absent";
  EXPECT_THAT(tests::message_of<DataError>([&] {
                find_idx_files(Split::train, {absent, folder_.path()}, "fetch it");
              }),
              AllOf(HasSubstr(folder_.path().string() + ": found none of"), HasSubstr(absent.string()),
                    HasSubstr("train-images-idx3-ubyte, train-images.idx3-ubyte, "),
                    HasSubstr("train-images-idx3-ubyte.gz, train-images.idx3-ubyte.gz")));
  EXPECT_THAT(tests::message_of<DataError>([&] {
                find_idx_files(Split::train, {absent / "mnist", absent}, "fetch it");
              }),
              HasSubstr("absent: is no folder"));
}

TEST_F(IdxDataset, MissesTheLabelsBesideTheImages) {
  folder_.write("train-images-idx3-ubyte", images_);
  EXPECT_THAT(tests::message_of<DataError>([&] { find_idx_files(Split::train, {folder_.path()}, "fetch it"); }),
              AllOf(HasSubstr("train-labels-idx1-ubyte.gz"), HasSubstr("get it: fetch it; or")));
}

}  // namespace
}  // namespace gradring::data
