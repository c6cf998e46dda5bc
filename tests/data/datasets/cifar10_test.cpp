// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/dataset_files.h"

#include <gmock/gmock.h>

#include <array>
#include <cstdlib>

#include "data/datasets/open_dataset.h"
#include "data/files/byte_source.h"
#include "tests/data/support/message_of.h"
#include "tests/data/support/written_cifar10.h"
#include "tests/support/temp_folder.h"

namespace gradring::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using tests::Bytes;

class Cifar10File : public ::testing::Test {
 protected:
  std::string error(const Bytes& bytes) const {
    const auto path = folder_.write("batch.bin", bytes);
    return tests::message_of<DataError>([&] { open_cifar(Cifar::ten, {path}); });
  }

  const tests::TempFolder folder_;
};

TEST_F(Cifar10File, TurnsPlanesIntoPixels) {
  const auto dataset = open_cifar(Cifar::ten, {folder_.write("batch.bin", tests::cifar10_record(7))});
  EXPECT_EQ(dataset->size(), 1);
  EXPECT_EQ(dataset->label(0), 7);
  EXPECT_THAT(dataset->pixels(0), ElementsAreArray(tests::cifar10_pixels(7)));
}

TEST_F(Cifar10File, AppendsFileAfterFile) {
  const auto dataset = open_cifar(Cifar::ten, {folder_.write("first", tests::cifar10_bytes(2, 3)),  //
                                               folder_.write("second", tests::cifar10_bytes(2, 8))});
  std::vector<int> labels;
  for (std::int64_t i = 0; i < dataset->size(); ++i) labels.push_back(dataset->label(i));
  EXPECT_THAT(labels, ElementsAre(3, 4, 8, 9));
  EXPECT_THAT(dataset->pixels(3), ElementsAreArray(tests::cifar10_pixels(9)));
}

TEST_F(Cifar10File, CountsByTheSizeAlone) {
  const auto three = folder_.write("three.bin", Bytes(3 * 3073, 0xff)), two = folder_.write("two.bin", Bytes(2 * 3073));
  EXPECT_THAT(tests::message_of<DataError>([&] {
                open_cifar(Cifar::ten, {three, two});
              }),
              HasSubstr("two.bin: holds 2 records, but three.bin holds 3"));
}

TEST_F(Cifar10File, RejectsOneThatIsCutShortAtAnyByte) {
  const Bytes whole = tests::cifar10_bytes(1);
  for (std::size_t size = 1; size < whole.size(); size += 97)
    EXPECT_THAT(error(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))),
                AllOf(HasSubstr("batch.bin: has " + std::to_string(size) + " bytes"), HasSubstr("truncated"),
                      HasSubstr("download it again")));
}

TEST_F(Cifar10File, RejectsOneByteTooMany) {
  Bytes bytes = tests::cifar10_bytes(2);
  bytes.push_back(0);
  EXPECT_THAT(error(bytes), HasSubstr("has 6147 bytes, expected a multiple of 3073"));
}

TEST_F(Cifar10File, SaysWhatAMistakenFileIs) {
  const std::string_view pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\n";
  EXPECT_THAT(error(Bytes(pointer.begin(), pointer.end())), HasSubstr("is a Git LFS pointer to a file; fetch"));
}

TEST_F(Cifar10File, RejectsAnEmptyFile) { EXPECT_THAT(error({}), HasSubstr("is empty")); }

TEST_F(Cifar10File, RejectsALabelOutOfRange) {
  Bytes bytes = tests::cifar10_bytes(3);
  bytes[2 * 3073] = 10;
  EXPECT_THAT(error(bytes), AllOf(HasSubstr("record 2"), HasSubstr("label 10"), HasSubstr("0 to 9")));
}

TEST_F(Cifar10File, SaysThatItCannotBeOpened) {
  EXPECT_THAT(tests::message_of<DataError>([&] { open_cifar(Cifar::ten, {folder_.path() / "absent.bin"}); }),
              HasSubstr("absent.bin: cannot be opened"));
}

/// A record has a superclass before the class.
TEST(Cifar100, HasTheClassAfterTheSuperclass) {
  const tests::TempFolder folder;
  Bytes record = tests::cifar10_record(99);
  record.insert(record.begin(), 19);
  for (const std::filesystem::path below : {"cifar100", "cifar-100-binary", ""}) {
    folder.write(below / "train.bin", record);
    const auto train = open_dataset("cifar100", Split::train, folder.path());
    EXPECT_EQ(train->size(), 1);
    EXPECT_EQ(train->label(0), 99);
    EXPECT_EQ(train->class_names()[99], "worm");
    EXPECT_THAT(train->pixels(0), ElementsAreArray(tests::cifar10_pixels(99)));
    std::filesystem::remove(folder.path() / below / "train.bin");
  }
  record[1] = 100;
  const auto path = folder.write("train.bin", record);
  EXPECT_THAT(tests::message_of<DataError>([&] { open_cifar(Cifar::hundred, {path}); }),
              AllOf(HasSubstr("label 100"), HasSubstr("0 to 99"), HasSubstr("CIFAR-100")));
  folder.write("cifar-100-python/test", record);
  EXPECT_THAT(tests::message_of<DataError>([&] { open_dataset("cifar100", Split::test, folder.path()); }),
              HasSubstr("holds the Python version of CIFAR-100"));
}

TEST(Cifar10, JoinsTheFiveTrainingFilesInOrder) {
  const tests::TempFolder folder;
  tests::write_cifar10(folder, "", 3);
  const auto train = open_dataset("cifar10", Split::train, folder.path());
  EXPECT_EQ(train->name(), "cifar10");
  EXPECT_EQ(train->size(), 15);
  EXPECT_EQ(train->shape(), kernels::Shape({32, 32, 3}));
  EXPECT_EQ(train->classes(), 10);
  for (std::int64_t i = 0; i < train->size(); ++i) {
    EXPECT_EQ(train->label(i), i % 10);
    const auto pixels = train->pixels(i);
    EXPECT_EQ(tests::Bytes(pixels.begin(), pixels.end()), tests::cifar10_pixels(static_cast<std::uint8_t>(i % 10)));
  }
}

TEST(Cifar10, TestsOnTheSixth) {
  const tests::TempFolder folder;
  tests::write_cifar10(folder, "", 2);
  const auto test = open_dataset("cifar10", Split::test, folder.path());
  EXPECT_EQ(test->size(), 2);
  EXPECT_EQ(test->label(1), 1);
}

TEST(Cifar10, IsFoundInTheUsualFolders) {
  for (const char* below : {"", "cifar10", "cifar10/cifar-10-batches-bin", "cifar-10-batches-bin"}) {
    const tests::TempFolder folder;
    tests::write_cifar10(folder, below, 1);
    EXPECT_EQ(open_dataset("cifar10", Split::train, folder.path())->size(), 5) << below;
  }
}

TEST(Cifar10, MissesOneOfTheFiles) {
  const tests::TempFolder folder;
  tests::write_cifar10(folder, "", 1);
  std::filesystem::remove(folder.path() / "data_batch_4.bin");
  EXPECT_THAT(tests::message_of<DataError>(
                  [&] { find_cifar_files(Cifar::ten, Split::train, {folder.path()}, "gradring data fetch cifar10"); }),
              AllOf(HasSubstr("found no data_batch_4.bin"), HasSubstr(folder.path().string()),
                    HasSubstr("gradring data fetch cifar10")));
}

TEST(Cifar10, KnowsThePythonVersionWhenItSeesIt) {
  const tests::TempFolder folder;
  folder.write("cifar-10-batches-py/data_batch_1", tests::Bytes{0x80, 0x02});
  EXPECT_THAT(tests::message_of<DataError>([&] { open_dataset("cifar10", Split::train, folder.path()); }),
              AllOf(HasSubstr("cifar-10-batches-py: holds the Python version"), HasSubstr("binary version")));
}

TEST(Cifar10, RejectsAFileThatWasCutShortBetweenTwoRecords) {
  const tests::TempFolder folder;
  tests::write_cifar10(folder, "", 3);
  folder.write("data_batch_2.bin", tests::cifar10_bytes(2));
  EXPECT_THAT(tests::message_of<DataError>([&] { open_dataset("cifar10", Split::train, folder.path()); }),
              AllOf(HasSubstr("data_batch_2.bin: holds 2 records, but data_batch_1.bin holds 3"),
                    HasSubstr("download it again")));
}

/// The real set, where the machine has it in its binary form.
class RealCifar10 : public ::testing::Test {
 protected:
  std::unique_ptr<Dataset> open(Split split) const {
    return open_dataset("cifar10", split, std::getenv("GRADRING_DATA_DIR"));
  }
  void SetUp() override {
    const char* folder = std::getenv("GRADRING_DATA_DIR");
    if (!folder) GTEST_SKIP() << "GRADRING_DATA_DIR is not set";
    if (!std::filesystem::exists(std::filesystem::path(folder) / "cifar10/test_batch.bin"))
      GTEST_SKIP() << "GRADRING_DATA_DIR has no cifar10/test_batch.bin";
  }
};

TEST_F(RealCifar10, HasItsClassesInEqualNumbers) {
  for (const auto& [split, each] : {std::pair(Split::train, 5000), std::pair(Split::test, 1000)}) {
    const auto dataset = open(split);
    EXPECT_EQ(dataset->size(), 10 * each);
    std::array<int, 10> counts{};
    for (std::int64_t i = 0; i < dataset->size(); ++i) ++counts.at(static_cast<std::size_t>(dataset->label(i)));
    EXPECT_THAT(counts, ::testing::Each(each));
  }
}

TEST_F(RealCifar10, HasThePublishedMeanOfEachChannel) {
  const auto train = open(Split::train);
  std::array<std::uint64_t, 3> sums{};
  for (std::int64_t i = 0; i < train->size(); ++i) {
    const auto pixels = train->pixels(i);
    for (std::size_t j = 0; j < pixels.size(); ++j) sums[j % 3] += pixels[j];
  }
  constexpr std::array<double, 3> kPublished = {0.4914, 0.4822, 0.4465};
  for (std::size_t channel = 0; channel < 3; ++channel)
    EXPECT_NEAR(static_cast<double>(sums[channel]) / (50'000.0 * 1024 * 255), kPublished[channel], 1e-4);
}

}  // namespace
}  // namespace gradring::data
