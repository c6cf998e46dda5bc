// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/open_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "data/datasets/known_datasets.h"
#include "data/datasets/open_folder.h"
#include "data/datasets/own_data.h"
#include "data/files/byte_source.h"
#include "kernels/base/error.h"
#include "tests/data/support/message_of.h"
#include "tests/data/support/written_idx.h"
#include "tests/data/support/written_npy.h"
#include "tests/support/temp_folder.h"

namespace gradring::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(OpenDataset, NamesTheNearestOfAnUnknownName) {
  EXPECT_THAT(tests::message_of<InvalidArgument>([] { open_dataset("fashion_mnist", Split::train, "."); }),
              AllOf(HasSubstr("'fashion_mnist'"), HasSubstr("Did you mean 'fashion-mnist'?")));
}

TEST(OpenDataset, ListsItsNamesWhereNoneIsNear) {
  EXPECT_THAT(tests::message_of<InvalidArgument>([] { open_dataset("imagenet-21k", Split::train, "."); }),
              HasSubstr("expected one of mnist, fashion-mnist, cifar10, cifar100, digits, arrays, idx, folder."));
}

TEST(OpenDataset, AsksForAFolderWhereOneIsNeeded) {
  EXPECT_THAT(tests::message_of<InvalidArgument>([] { open_dataset("mnist", Split::train, ""); }),
              HasSubstr("--data-dir"));
}

TEST(OpenDataset, NamesTheCommandThatGetsMissingFiles) {
  const tests::TempFolder empty;
  for (const std::string name : {"mnist", "fashion-mnist", "cifar10", "cifar100"}) {
    EXPECT_THAT(tests::message_of<InvalidArgument>([&] { open_dataset(name, Split::train, ""); }),
                HasSubstr("gradring data fetch " + name + " --data-dir datasets"));
    EXPECT_THAT(tests::message_of<DataError>([&] { open_dataset(name, Split::test, empty.path()); }),
                HasSubstr("gradring data fetch " + name + " --data-dir " + empty.path().string() + ";"));
  }
}

/// Not "found none of the files": the user sees one by that name.
TEST(OpenDataset, NamesWhatIsInPlaceOfAFile) {
  for (const auto& [name, file] :
       {std::pair("mnist", "t10k-images.idx3-ubyte"), std::pair("cifar10", "test_batch.bin")}) {
    const auto error_of = [name = name](const tests::TempFolder& folder) {
      return tests::message_of<DataError>([&] { open_dataset(name, Split::test, folder.path()); });
    };
    const tests::TempFolder folder, links;
    std::filesystem::create_directory(folder.path() / file);
    EXPECT_THAT(error_of(folder), HasSubstr((folder.path() / file).string() + ": is not a regular file; put"));
    std::filesystem::create_symlink("nothing", links.path() / file);
    EXPECT_THAT(error_of(links), HasSubstr((links.path() / file).string() + ": is a link, but not to a regular file"));
  }
}

std::string said_on_opening(const char* name, Split split, const tests::TempFolder& folder) {
  ::testing::internal::CaptureStderr();
  open_dataset(name, split, folder.path());
  return ::testing::internal::GetCapturedStderr();
}

TEST(OpenDataset, NamesClassesWithoutSamples) {
  const tests::TempFolder folder;
  tests::write_arrays(folder);
  EXPECT_EQ(said_on_opening("arrays", Split::train, folder),
            "gradring: arrays: the training set has no samples of 1 of its 3 classes (1)\n");
  EXPECT_EQ(said_on_opening("arrays", Split::test, folder),
            "gradring: arrays: the test set has no samples of 2 of its 3 classes (0, 2), so evaluation does not cover "
            "every class\n");
  folder.write("train_labels.npy", tests::npy_bytes("|u1", "(2,)", {2, 1}));
  EXPECT_THAT(said_on_opening("arrays", Split::train, folder), HasSubstr("(0); are the labels counted from 1"));
  folder.write("train_labels.npy", tests::npy_bytes("|u1", "(2,)", {1, 0}));
  EXPECT_EQ(said_on_opening("arrays", Split::train, folder), "");
}

/// A download that ends between two records looks whole.
TEST(OpenDataset, SaysThatCifarHasAnotherNumberOfSamples) {
  const tests::TempFolder folder;
  folder.write("train.bin", tests::Bytes(3 * 3074));
  EXPECT_THAT(said_on_opening("cifar100", Split::train, folder),
              AllOf(HasSubstr("cifar100: 3 train samples instead of 50000"), HasSubstr("data fetch cifar100")));
  folder.write("test.bin", tests::Bytes(10'000 * 3074));
  EXPECT_EQ(said_on_opening("cifar100", Split::test, folder), "");
}

TEST(FetchCommand, QuotesAFolderForTheShell) {
  EXPECT_EQ(fetch_command("mnist", "/a/b-c_1.d"), "gradring data fetch mnist --data-dir /a/b-c_1.d");
  EXPECT_EQ(fetch_command("mnist", "my data's"), "gradring data fetch mnist --data-dir 'my data'\\''s'");
}

TEST(OpenDataset, KnowsEveryNameThatItLists) {
  const tests::TempFolder empty;
  for (std::string_view name : dataset_names()) {
    try {
      EXPECT_EQ(open_dataset(name, Split::test, empty.path())->name(), name);
    } catch (const DataError& error) {
      const bool is_cifar = name.starts_with("cifar");
      EXPECT_THAT(error.what(), HasSubstr(name == kFolder   ? "holds no folder train"
                                          : name == kArrays ? "test_images.npy"
                                          : is_cifar        ? ".bin"
                                                            : "t10k-images-idx3-ubyte"));
    }
  }
}

TEST(OpenDataset, LooksInTheFolderAndInTheUsualOnesBelow) {
  for (const std::filesystem::path below : {"", "mnist", "MNIST/raw"}) {
    const tests::TempFolder folder;
    folder.write(below / "train-images-idx3-ubyte", tests::idx_bytes({1, 1, 1}, {7}));
    folder.write(below / "train-labels-idx1-ubyte", tests::idx_bytes({1}, {5}));
    EXPECT_EQ(open_dataset("mnist", Split::train, folder.path())->label(0), 5) << below;
  }
}

/// One sample with this label, under the names that all sets of IDX files share.
void write_set(const tests::TempFolder& folder, const std::filesystem::path& below, std::uint8_t label) {
  folder.write(below / "train-images-idx3-ubyte", tests::idx_bytes({1, 1, 1}, {7}));
  folder.write(below / "train-labels-idx1-ubyte", tests::idx_bytes({1}, {label}));
}

TEST(OpenDataset, TakesTheFolderOfItsNameBeforeTheOneAbove) {
  for (const std::filesystem::path below : {"fashion-mnist", "FashionMNIST/raw"}) {
    const tests::TempFolder folder;
    write_set(folder, "", 1);
    write_set(folder, below, 2);
    EXPECT_EQ(open_dataset("fashion-mnist", Split::train, folder.path())->label(0), 2) << below;
    EXPECT_EQ(open_dataset("mnist", Split::train, folder.path())->label(0), 1);
  }
}

TEST(OpenDataset, RejectsTheFolderOfTheOtherSet) {
  const tests::TempFolder folder;
  for (const std::filesystem::path below : {"mnist", "MNIST/raw"}) {
    write_set(folder, below, 1);
    for (const std::filesystem::path& spelled : {folder.path() / below, folder.path() / below / ""})
      EXPECT_THAT(tests::message_of<DataError>([&] { open_dataset("fashion-mnist", Split::train, spelled); }),
                  AllOf(HasSubstr("is by its name the folder of mnist, not of the requested fashion-mnist"),
                        HasSubstr(below.string())));
    EXPECT_EQ(open_dataset("mnist", Split::train, folder.path() / below)->label(0), 1);
  }
}

/// The real sets, where the machine has them.
class RealSets : public ::testing::TestWithParam<const char*> {
 protected:
  /// Labels of the sets are balanced to a tenth each within a few per cent; a shifted file is not.
  void check(Split split, std::int64_t size) const {
    const char* folder = std::getenv("GRADRING_DATA_DIR");
    if (!folder) GTEST_SKIP() << "GRADRING_DATA_DIR is not set";
    std::unique_ptr<Dataset> dataset;
    try {
      dataset = open_dataset(GetParam(), split, folder);
    } catch (const DataError& error) {
      if (!std::filesystem::is_directory(std::filesystem::path(folder) / GetParam())) GTEST_SKIP() << error.what();
      throw;
    }
    EXPECT_EQ(dataset->size(), size);
    EXPECT_EQ(dataset->shape(), kernels::Shape({28, 28, 1}));
    std::array<int, 10> counts{};
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      ++counts.at(static_cast<std::size_t>(dataset->label(i)));
      for (std::uint8_t pixel : dataset->pixels(i)) sum += pixel;
    }
    const auto samples = static_cast<double>(size);
    for (int count : counts) EXPECT_NEAR(count, samples / 10, samples / 50);
    const double mean = static_cast<double>(sum) / samples / 784 / 255;
    EXPECT_NEAR(mean, std::string_view(GetParam()) == "mnist" ? 0.1307 : 0.2860, 0.002);  // as published
  }
};

TEST_P(RealSets, Train) { check(Split::train, 60'000); }
TEST_P(RealSets, Test) { check(Split::test, 10'000); }

INSTANTIATE_TEST_SUITE_P(Idx, RealSets, ::testing::Values("mnist", "fashion-mnist"));

TEST(KnownDatasets, NeedNoFiles) {
  for (const std::string_view name : known_dataset_names())
    EXPECT_EQ(facts_of(DatasetSpec{.name = std::string(name)}).name, name);
}

TEST(KnownDatasets, HaveTheFactsOfTheirFiles) {
  const tests::TempFolder folder;
  write_set(folder, "", 1);
  for (const char* name : {"digits", "fashion-mnist", "mnist"})
    EXPECT_EQ(facts_of(*open_dataset(name, name == std::string("digits") ? Split::test : Split::train, folder.path()))
                  .class_names,
              known_dataset(name).class_names);
  const auto digits = open_dataset("digits", Split::test, "");
  EXPECT_EQ(facts_of(*digits), known_dataset("digits"));
}

TEST(KnownDatasets, NameTheNearest) {
  EXPECT_THAT(tests::message_of<InvalidArgument>([] { known_dataset("mnits"); }), testing::HasSubstr("'mnist'"));
}

}  // namespace
}  // namespace gradring::data
