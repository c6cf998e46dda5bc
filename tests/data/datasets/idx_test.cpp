// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/dataset_files.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <tuple>

#include "data/files/byte_source.h"
#include "tests/data/support/message_of.h"
#include "tests/data/support/written_idx.h"
#include "tests/support/allocated_bytes.h"
#include "tests/support/temp_folder.h"

namespace gradring::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::Bytes;

class IdxFile : public ::testing::Test {
 protected:
  IdxArray read(const Bytes& bytes, int rank = 3) const { return read_idx(folder_.write("file", bytes), rank); }
  std::string error(const Bytes& bytes, int rank = 3) const {
    return tests::message_of<DataError>([&] { read(bytes, rank); });
  }

  /// Bytes that gzip cannot shrink.
  static Bytes noise(std::size_t count) {
    Bytes bytes(count);
    std::uint32_t state = 1;
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
    return bytes;
  }

  const tests::TempFolder folder_;
  const Bytes values_ = tests::counting(2 * 3 * 5);
  const Bytes plain_ = tests::idx_bytes({2, 3, 5}, values_);
  const Bytes packed_ = tests::gzipped(plain_);
};

TEST_F(IdxFile, ReadsPlainAndGzipAlike) {
  for (const Bytes& bytes : {plain_, packed_}) {
    const IdxArray array = read(bytes);
    EXPECT_EQ(array.extents, (std::vector<std::int64_t>{2, 3, 5}));
    EXPECT_EQ(array.values, values_);
  }
}

TEST_F(IdxFile, ReadsMoreThanOneInputBufferOfGzip) {
  const Bytes values = noise(300'000);
  EXPECT_EQ(read(tests::gzipped(tests::idx_bytes({300, 1000, 1}, values))).values, values);
}

TEST_F(IdxFile, ReadsExtentsBigEndian) {
  const Bytes many(258);
  EXPECT_EQ(read(tests::idx_bytes({258}, many), 1).extents.at(0), 258);
}

TEST_F(IdxFile, SaysWhatAMistakenFileIs) {
  const auto error_of = [this](std::string_view text) { return error(Bytes(text.begin(), text.end())); };
  EXPECT_THAT(error_of("version https://git-lfs.github.com/spec/v1\noid sha256:00\n"),
              HasSubstr("file: is a Git LFS pointer to a file; fetch the file itself: git lfs pull"));
  EXPECT_THAT(error_of("<!DOCTYPE html><html>404</html>"), HasSubstr("file: is a web page; download the file itself"));
  EXPECT_THAT(error_of(""), HasSubstr("file: is empty; "));
  const std::string_view page = "<html>404</html>";
  EXPECT_THAT(error(tests::gzipped(Bytes(page.begin(), page.end()))), HasSubstr("is a web page"));
}

TEST_F(IdxFile, NamesFileFindingAndAdvice) {
  EXPECT_THAT(error({'<', '!', 'D', 'O'}),
              AllOf(HasSubstr((folder_.path() / "file").string()), HasSubstr("3c 21 44 4f"), HasSubstr("00 00 08 03"),
                    HasSubstr("check what was downloaded")));
}

TEST_F(IdxFile, RejectsLabelsWhereImagesBelong) {
  EXPECT_THAT(error(tests::idx_bytes({30}, values_)), HasSubstr("starts with 00 00 08 01"));
  EXPECT_THAT(error(plain_, 1), HasSubstr("starts with 00 00 08 03"));
}

TEST_F(IdxFile, NamesTheTypeThatItDoesNotRead) {
  EXPECT_THAT(error({0, 0, 12, 1, 0, 0, 0, 1, 0, 0, 0, 7}),
              HasSubstr("an IDX file of 32-bit integers with 1 dimensions, and only unsigned bytes with 3 are read"));
  EXPECT_THAT(error({0, 0, 10, 3, 0, 0, 0, 1}), HasSubstr("it is not an IDX file"));
}

TEST_F(IdxFile, RejectsEveryTruncationOfAPlainFile) {
  for (std::size_t size = 1; size < plain_.size(); ++size)
    EXPECT_THAT(error(Bytes(plain_.begin(), plain_.begin() + static_cast<long>(size))),
                testing::AnyOf(HasSubstr("ends "), HasSubstr("a file of this size holds at most")))
        << size;
}

TEST_F(IdxFile, RejectsEveryTruncationOfAGzipFile) {
  for (std::size_t size = 2; size < packed_.size(); ++size)
    EXPECT_THAT(error(Bytes(packed_.begin(), packed_.begin() + static_cast<long>(size))),
                HasSubstr("ends in the middle"))
        << size;
}

TEST_F(IdxFile, NeverTakesADamagedGzipForAnother) {
  for (std::size_t bit = 0; bit < packed_.size() * 8; ++bit) {
    Bytes damaged = packed_;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    try {
      EXPECT_EQ(read(damaged).values, values_) << "bit " << bit;  // a flip in the time stamp harms nothing
    } catch (const DataError&) {
    }
  }
}

TEST_F(IdxFile, RejectsTrailingBytes) {
  Bytes longer = plain_;
  longer.push_back(0);
  EXPECT_THAT(error(longer), HasSubstr("continues after the 30 bytes"));
  EXPECT_THAT(error(tests::gzipped(longer)), HasSubstr("continues after the 30 bytes"));
}

TEST_F(IdxFile, RejectsAHeaderThatPromisesMoreThanTheFileCanHold) {
  for (const auto& extents : {std::vector<std::uint32_t>{0xffffffff, 0xffffffff, 0xffffffff}, {1u << 31, 1, 1}}) {
    const Bytes lie = tests::idx_bytes(extents, values_);
    EXPECT_THAT(error(lie), HasSubstr("bytes, but a file of this size holds at most "));
    EXPECT_THAT(error(tests::gzipped(lie)), HasSubstr("bytes, but a file of this size holds at most "));
  }
}

/// 392 MB, which a .gz of this size could hold.
TEST_F(IdxFile, TakesMemoryForWhatIsThereAndNotForWhatIsPromised) {
  const auto path = folder_.write("file", tests::gzipped(tests::idx_bytes({500'000, 28, 28}, noise(4u << 20))));
  const std::size_t before = tests::allocated_bytes();
  tests::reset_peak_allocated_bytes();
  EXPECT_THAT(tests::message_of<DataError>([&] { read_idx(path, 3); }), HasSubstr("ends before the 392000000 bytes"));
  EXPECT_LT(tests::peak_allocated_bytes() - before, 64u << 20);
}

/// 4 TB in a sparse file that could hold them.
TEST_F(IdxFile, RejectsMoreThanTheMemoryHolds) {
  for (const auto& [name, bytes, size] :
       {std::tuple("packed", tests::gzipped(tests::idx_bytes({1u << 30, 64, 64}, noise(100))), std::uint64_t{5} << 30),
        std::tuple("plain", tests::idx_bytes({1u << 30, 64, 64}, noise(100)), (std::uint64_t{1} << 42) + 16)}) {
    const auto path = folder_.write(name, bytes);
    std::filesystem::resize_file(path, size);
    EXPECT_THAT(tests::message_of<DataError>([&] { read_idx(path, 3); }),
                AllOf(HasSubstr("the 4398046511104 bytes that its header promises need 4194304 MiB of memory, but "),
                      HasSubstr("MiB are available"), HasSubstr("a machine with more memory")))
        << name;
  }
}

TEST_F(IdxFile, ReadsMoreThanTheFirstStepTakes) {
  const Bytes values(40'000'000, 7);
  EXPECT_EQ(read(tests::gzipped(tests::idx_bytes({40, 1000, 1000}, values))).values, values);
}

TEST_F(IdxFile, StopsInflatingWhereTheHeaderSays) {
  const Bytes bomb = tests::gzipped(tests::idx_bytes({1, 2, 2}, Bytes(64u << 20)));
  EXPECT_THAT(error(bomb), HasSubstr("continues after the 4 bytes"));
}

TEST_F(IdxFile, RejectsWhatIsNoFile) {
  EXPECT_THAT(tests::message_of<DataError>([&] { read_idx(folder_.path() / "absent", 3); }),
              HasSubstr("cannot be opened"));
  EXPECT_THAT(tests::message_of<DataError>([&] { read_idx(folder_.path(), 3); }), HasSubstr("cannot be opened"));
}

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

TEST_F(IdxDataset, RejectsCountsThatDiffer) {
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

TEST_F(IdxDataset, RejectsALabelOutOfRange) {
  EXPECT_THAT(error(images_, tests::idx_bytes({3}, {1, 10, 2})),
              AllOf(HasSubstr("label 10 in sample 1, but small has the classes 0 to 9"),
                    HasSubstr("use the labels of small, or renumber these from 0"), Not(HasSubstr("download"))));
}

TEST_F(IdxDataset, RejectsAnEmptySet) {
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
              HasSubstr("absent: is not a folder"));
}

TEST_F(IdxDataset, ReportsUnreadableFolder) {
  constexpr uid_t kNobody = 65534;
  const auto unreadable = folder_.path() / "unreadable";
  std::filesystem::create_directory(unreadable);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(unreadable.c_str(), 0), 0);
  const uid_t user = ::geteuid();
  const auto become = [user](uid_t other) { return user != 0 || ::seteuid(other) == 0; };
  ASSERT_TRUE(become(kNobody)) << "the superuser may read every folder";
  const std::string message = tests::message_of<std::system_error>([&] {
    find_idx_files(Split::train, {unreadable / "mnist", unreadable}, "fetch it");
  });
  ASSERT_TRUE(become(user));
  ::chmod(unreadable.c_str(), 0755);
  EXPECT_THAT(message,
              AllOf(HasSubstr(unreadable.string() + ": the folder cannot be read"), HasSubstr("Permission denied")));
}

TEST_F(IdxDataset, MissesTheLabelsBesideTheImages) {
  folder_.write("train-images-idx3-ubyte", images_);
  EXPECT_THAT(tests::message_of<DataError>([&] { find_idx_files(Split::train, {folder_.path()}, "fetch it"); }),
              AllOf(HasSubstr("train-labels-idx1-ubyte.gz"), HasSubstr("download them: fetch it; or")));
}

}  // namespace
}  // namespace gradring::data
