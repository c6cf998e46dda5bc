// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/fetch.h"

#include <gmock/gmock.h>

#include "data/files/byte_source.h"
#include "tests/data/support/heard.h"
#include "tests/data/support/http_test.h"
#include "tests/data/support/known.h"
#include "tests/data/support/message_of.h"
#include "tests/data/support/written_idx.h"
#include "tests/data/support/written_tar.h"

namespace gradring::data {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tests::Bytes;

class FetchTest : public tests::HttpTest {
 protected:
  void run(const CatalogueEntry& entry) {
    fetch(entry, {.data_dir = folder_.path(), .mirrors = {server_.url()}}, heard_);
  }
  /// The states of the entry's files on the disk.
  std::vector<FileState> states(const CatalogueEntry& entry) const {
    std::vector<FileState> found;
    for (const VerifiedFile& file : verify(entry, folder_.path())) found.push_back(file.check.state);
    return found;
  }
  bool exists(const char* name) const { return std::filesystem::exists(folder_.path() / name); }

  const tests::TempFolder folder_;
  tests::Heard heard_;

  // A set of two files, of which one is also known unpacked.
  const Bytes plain_ = tests::counting(1000), images_ = tests::gzipped(plain_), labels_ = {1, 2, 3};
  const tests::Known known_plain_{"images", plain_}, known_images_{"images.gz", images_},
      known_labels_{"labels", labels_};
  const std::vector<CatalogueFile> files_ = {{.file = known_images_.file(), .unpacked = known_plain_.file()},
                                             {.file = known_labels_.file()}};
  const CatalogueEntry entry_{.name = "small", .files = files_};

  // The same labels and another file, in an archive.
  const Bytes more_ = tests::counting(2000);
  const tests::Known known_more_{"more", more_};
  const std::vector<CatalogueFile> packed_files_ = {{.file = known_labels_.file()}, {.file = known_more_.file()}};
  const Bytes archive_ = tests::gzipped(tests::tar_bytes({{.name = "top/", .type = '5'},
                                                          {.name = "top/readme", .content = {9}},
                                                          {.name = "top/more", .content = more_},
                                                          {.name = "top/labels", .content = labels_}}));
  CatalogueEntry packed(const tests::Known& archive) const {
    return {.name = "packed", .files = packed_files_, .archive = archive.file()};
  }
};

TEST_F(FetchTest, GetsEveryFile) {
  server_.serve("images.gz", {.content = images_});
  server_.serve("labels", {.content = labels_});
  run(entry_);
  EXPECT_THAT(states(entry_), ElementsAre(FileState::good, FileState::good));
  EXPECT_THAT(heard_.finished, ElementsAre("images.gz", "labels"));
}

TEST_F(FetchTest, LeavesWhatIsThereAndRight) {
  folder_.write("small/images", plain_);
  server_.serve("labels", {.content = labels_});
  run(entry_);
  EXPECT_THAT(heard_.there, ElementsAre("images"));
  EXPECT_THAT(heard_.finished, ElementsAre("labels"));
  run(entry_);
  EXPECT_THAT(heard_.there, ElementsAre("images", "images", "labels"));
  EXPECT_EQ(server_.requests().size(), 1);
}

TEST_F(FetchTest, GetsWhatIsThereAndWrongAnew) {
  folder_.write("small/images.gz", images_);
  folder_.write("small/labels", Bytes{1, 2, 4});
  EXPECT_THAT(states(entry_), ElementsAre(FileState::good, FileState::wrong));
  server_.serve("labels", {.content = labels_});
  run(entry_);
  EXPECT_THAT(states(entry_), Each(FileState::good));
}

TEST_F(FetchTest, PointsOutAnUnpackedFileThatWouldBeReadFirst) {
  folder_.write("small/images", Bytes{0});
  EXPECT_THAT(tests::message_of<DataError>([&] { run(entry_); }),
              AllOf(HasSubstr("images: has 1 bytes, expected 1000"), HasSubstr("delete the file")));
}

TEST_F(FetchTest, UnpacksAnArchiveAndRemovesIt) {
  const tests::Known known("all.tar.gz", archive_);
  server_.serve("all.tar.gz", {.content = archive_});
  run(packed(known));
  EXPECT_THAT(states(packed(known)), ElementsAre(FileState::good, FileState::good));
  EXPECT_FALSE(exists("packed/all.tar.gz"));
  EXPECT_FALSE(exists("packed/readme")) << "only what the catalogue knows is unpacked";
  EXPECT_FALSE(exists("packed/labels.part"));
  EXPECT_THAT(heard_.finished, ElementsAre("all.tar.gz", "more", "labels"));
}

TEST_F(FetchTest, UnpacksAnArchiveThatIsThereAlready) {
  const tests::Known known("all.tar.gz", archive_);
  folder_.write("packed/all.tar.gz", archive_);
  folder_.write("packed/more.part", Bytes(5000, 7));  // what an earlier run left
  run(packed(known));
  EXPECT_THAT(states(packed(known)), Each(FileState::good));
  EXPECT_THAT(server_.requests(), IsEmpty());
  EXPECT_TRUE(exists("packed/all.tar.gz")) << "whoever put it there may want it";
}

TEST_F(FetchTest, RejectsAnArchiveThatLacksAFile) {
  const Bytes poor = tests::gzipped(tests::tar_bytes({{.name = "top/labels", .content = labels_}}));
  const tests::Known known("all.tar.gz", poor);
  server_.serve("all.tar.gz", {.content = poor});
  EXPECT_THAT(tests::message_of<DataError>([&] { run(packed(known)); }), HasSubstr("holds no more"));
}

TEST_F(FetchTest, RejectsAnArchiveWithAnotherVersionOfAFile) {
  const Bytes wrong =
      tests::gzipped(tests::tar_bytes({{.name = "more", .content = more_}, {.name = "labels", .content = {3, 2, 1}}}));
  const tests::Known known("all.tar.gz", wrong);
  server_.serve("all.tar.gz", {.content = wrong});
  EXPECT_THAT(tests::message_of<DataError>([&] { run(packed(known)); }), HasSubstr("labels in it has SHA-256"));
  EXPECT_FALSE(exists("packed/labels"));
  EXPECT_FALSE(exists("packed/labels.part"));
}

TEST_F(FetchTest, AsksThePublicMirrorsWhereNoneIsNamed) {
  server_.serve("public/images.gz", {.content = images_});
  server_.serve("public/labels", {.content = labels_});
  const std::string mirror = server_.url() + "public/";
  const std::vector<std::string_view> mirrors = {mirror};
  const CatalogueEntry entry{.name = "small", .files = files_, .mirrors = mirrors};
  fetch(entry, {.data_dir = folder_.path()}, heard_);
  EXPECT_THAT(states(entry), Each(FileState::good));
}

TEST_F(FetchTest, VerifiesWhereTheDataSetWouldBeOpened) {
  EXPECT_THAT(states(entry_), Each(FileState::missing));
  folder_.write("images", plain_);  // in the folder itself
  folder_.write("small/labels", Bytes{7});
  const auto found = verify(entry_, folder_.path());
  EXPECT_EQ(found[0].path, folder_.path() / "images");
  EXPECT_EQ(found[0].check.state, FileState::good);
  EXPECT_EQ(found[1].check.state, FileState::wrong);
  EXPECT_THAT(found[1].check.found, HasSubstr("has 1 bytes, expected 3"));
}

/// Some mirrors have "." before "idx".
TEST_F(FetchTest, AcceptsTheNamesThatReadersAccept) {
  const tests::Known plain("train-labels-idx1-ubyte", plain_), packed("train-labels-idx1-ubyte.gz", images_);
  const std::vector<CatalogueFile> files = {{.file = packed.file(), .unpacked = plain.file()}};
  const CatalogueEntry entry{.name = "small", .files = files};
  for (const auto& [name, bytes] :
       {std::pair("train-labels.idx1-ubyte.gz", images_), {"train-labels.idx1-ubyte", plain_}}) {
    const auto path = folder_.write(std::filesystem::path("small") / name, bytes);
    EXPECT_EQ(verify(entry, folder_.path()).front().path, path);
    EXPECT_THAT(states(entry), ElementsAre(FileState::good)) << name;
    run(entry);
    EXPECT_EQ(heard_.there.back(), name);
  }
  EXPECT_THAT(server_.requests(), IsEmpty());
  folder_.write("small/train-labels.idx1-ubyte", Bytes{1});
  EXPECT_THAT(states(entry), ElementsAre(FileState::wrong)) << "readers prefer it to the packed one";
}

}  // namespace
}  // namespace gradring::data
