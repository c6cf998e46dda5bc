// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/open_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "data/datasets/class_names.h"
#include "data/datasets/pack_images.h"
#include "data/files/byte_source.h"
#include "data/images/image.h"
#include "tests/data/support/image_folder.h"
#include "tests/data/support/message_of.h"

namespace gradring::data {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using tests::Bytes;
namespace fs = std::filesystem;

class OpenFolder : public testing::Test {
 protected:
  void SetUp() override {
    if (png_library().empty()) GTEST_SKIP() << "built without libpng";
  }
  std::string refusal(Split split = Split::train) {
    return tests::message_of<DataError>([&] { folder_.open(split); });
  }
  std::size_t files_ending(const std::string& suffix) const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_.cache())) count += entry.path().extension() == suffix;
    return count;
  }
  static std::string key_of(const Dataset& images) {
    const PackedFacts& facts = dynamic_cast<const PackedImages&>(images).facts();
    return packed_key(facts.content, facts.decoders);
  }
  /// Removes the packed images, with what led to them. Returns the path of the training set's ID with `suffix`.
  fs::path without_images(const std::string& suffix) {
    folder_.open();
    fs::path id;
    for (const auto& entry : fs::directory_iterator(folder_.cache()))
      if (entry.path().extension() == ".list") id = entry.path();
    for (const auto& entry : fs::directory_iterator(folder_.cache())) fs::remove(entry.path());
    return id.replace_extension(suffix);
  }

  tests::ImageFolder folder_;
};

TEST_F(OpenFolder, IsADatasetOfCroppedImages) {
  folder_.add_cats_and_dogs();
  const auto set = folder_.open();
  EXPECT_EQ(set->name(), "folder");
  EXPECT_EQ(set->size(), 4);
  EXPECT_EQ(set->shape(), (kernels::Shape{4, 4, 3}));
  EXPECT_EQ(set->classes(), 2);
  EXPECT_EQ(set->label(1), 0);
  EXPECT_EQ(set->label(2), 1);
  EXPECT_THAT(set->pixels(3).first(6), ElementsAre(200, 0, 255, 200, 0, 255));
  EXPECT_THROW(set->pixels(4), InvalidArgument);
  EXPECT_EQ(folder_.open(Split::test)->label(0), 1);
}

TEST_F(OpenFolder, SecondStartReadsNoImage) {
  folder_.add_cats_and_dogs();
  folder_.open();
  EXPECT_THAT(folder_.said(), AllOf(HasSubstr("preparing the images of"), HasSubstr("4 files, 4 x 4 pixels")));
  // Other bytes of the same size with the same times would be noticed only by reading.
  const auto set = folder_.open();
  EXPECT_THAT(folder_.said(), IsEmpty());
  EXPECT_EQ(set->pixels(0)[0], 10);
  EXPECT_EQ(files_ending(".part"), 0u);
}

TEST_F(OpenFolder, NoticesAChangedImage) {
  folder_.add_cats_and_dogs();
  folder_.open();
  folder_.add("train/cat/1.png", 77);
  EXPECT_EQ(folder_.open()->pixels(0)[0], 77);
  EXPECT_EQ(files_ending(".images"), 2u);
}

TEST_F(OpenFolder, KnowsACopyByItsContent) {
  folder_.add_cats_and_dogs();
  const auto set = folder_.open();
  folder_.said();
  FolderSpec copy = folder_.spec();
  copy.folder = folder_.path().parent_path() / "copy";
  fs::copy(folder_.path(), copy.folder, fs::copy_options::recursive);
  EXPECT_EQ(content_hash(*open_folder(copy, Split::train)), content_hash(*set));
  EXPECT_THAT(folder_.said(), IsEmpty()) << "nothing was decoded";
  EXPECT_EQ(files_ending(".images"), 1u);
}

/// A run is bound to it: a program that was built with other decoders has to find it again.
TEST(ImageFolderHash, IsThatOfSettingsClassesAndFiles) {
  const ImageSettings settings{.size = 64, .resize = 72};
  std::string bytes;
  const auto add = [&](const std::string& text) {
    const std::uint64_t size = text.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
  };
  for (const std::string& text : {settings.text(), std::string("cat"), std::string("dog"), std::string()}) add(text);
  add("cat/0.png");
  bytes.append(32, '\1');
  add("dog/1.jpg");
  bytes.append(32, '\2');
  Sha256 first, second;
  first.fill(std::byte{1});
  second.fill(std::byte{2});
  const ImageListing listing{.classes = {"cat", "dog"},
                             .files = {{.path = "cat/0.png", .label = 0}, {.path = "dog/1.jpg", .label = 1}}};
  EXPECT_EQ(to_hex(content_key(listing, std::vector<Sha256>{first, second}, settings)), to_hex(sha256_of(bytes)));
}

TEST_F(OpenFolder, MakesADamagedFileAgain) {
  folder_.add_cats_and_dogs();
  folder_.open();
  const std::vector<CachedImages> before = cached_images(folder_.cache());
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(before[0].facts.classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(before[0].facts.source, folder_.path() / "train");
  const std::uint64_t size = fs::file_size(before[0].path);
  for (const std::uint64_t left : {std::uint64_t{0}, std::uint64_t{100}, size / 2, size - 1}) {
    fs::resize_file(before[0].path, left);
    EXPECT_NE(cached_images(folder_.cache())[0].damage, "") << left;
    EXPECT_EQ(folder_.open()->pixels(0)[0], 10) << left;
    EXPECT_EQ(cached_images(folder_.cache())[0].damage, "");
  }
  for (std::uint64_t at = size - 300; at < size; at += 7) {
    std::fstream(before[0].path, std::ios::in | std::ios::out | std::ios::binary).seekp(static_cast<std::streamoff>(at))
        << '\xee';
    EXPECT_EQ(folder_.open()->size(), 4) << at;
  }
}

TEST_F(OpenFolder, TakesNoFileOfAnotherKey) {
  folder_.add_cats_and_dogs();
  for (const char* path : {"test/cat/1.png", "test/cat/2.png", "test/dog/1.png"}) folder_.add(path, 99);
  const fs::path train = folder_.cache() / (key_of(*folder_.open()) + ".images");
  const fs::path test = folder_.cache() / (key_of(*folder_.open(Split::test)) + ".images");
  fs::copy_file(test, train, fs::copy_options::overwrite_existing);
  for (const CachedImages& each : cached_images(folder_.cache()))
    EXPECT_EQ(each.damage.empty(), each.path == test) << each.damage;
  EXPECT_EQ(folder_.open()->pixels(0)[0], 10);
  folder_.add("test/cat/3.png", 99);
  fs::remove(folder_.path() / "test/dog/1.png");  // as many files of other classes
  const std::string other = key_of(*folder_.open(Split::test));
  for (const auto& entry : fs::directory_iterator(folder_.cache()))
    if (entry.path().extension() == ".list") {
      std::fstream list(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      list.seekp(65) << other;
    }
  EXPECT_EQ(folder_.open()->pixels(0)[0], 10) << "settings, classes and labels are compared, too";
}

TEST_F(OpenFolder, RejectsDamagedPixels) {
  folder_.add_cats_and_dogs();
  const fs::path file = folder_.cache() / (key_of(*folder_.open()) + ".images");
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(kPackedStart + 4 * 4 * 3 + 5) << '\x01';
  const auto set = folder_.open();
  EXPECT_EQ(set->pixels(0)[0], 10);
  EXPECT_THAT(tests::message_of<DataError>([&] { set->pixels(1); }),
              AllOf(HasSubstr(file.string()), HasSubstr("is damaged: the pixels of image 1"), HasSubstr("cache rm")));
}

TEST_F(OpenFolder, EndsWithAMessageIfTheFileShrinks) {
  folder_.add_cats_and_dogs();
  const auto set = folder_.open();
  const fs::path file = folder_.cache() / (key_of(*set) + ".images");
  EXPECT_EXIT(
      {
        fs::resize_file(file, 0);
        set->pixels(3);
      },
      testing::ExitedWithCode(4), key_of(*set) + ".images: has become shorter while it was in use");
}

TEST_F(OpenFolder, WritesThroughNoLink) {
  folder_.add_cats_and_dogs();
  folder_.open();
  const fs::path victim = folder_.add("victim", Bytes{'m', 'i', 'n', 'e'});
  for (const char* suffix : {".part", ".lock"}) {
    SCOPED_TRACE(suffix);
    const fs::path planted = without_images(suffix);
    fs::create_symlink(victim, planted);
    if (suffix == std::string(".lock"))
      EXPECT_THROW(folder_.open(), std::system_error);
    else
      EXPECT_EQ(folder_.open()->size(), 4);
    EXPECT_EQ(fs::file_size(victim), 4u);
  }
}

TEST_F(OpenFolder, WaitsForNoFifoAndNamesAFolder) {
  folder_.add_cats_and_dogs();
  const std::string key = key_of(*folder_.open());
  for (const char* suffix : {".part", ".lock", ".list", ".images"}) {
    SCOPED_TRACE(suffix);
    fs::path planted = without_images(suffix);
    if (suffix == std::string(".images")) planted = folder_.cache() / (key + suffix);
    ASSERT_EQ(::mkfifo(planted.c_str(), 0600), 0);
    EXPECT_EQ(folder_.open()->size(), 4);
    without_images(suffix);
    fs::remove(planted);
    fs::create_directories(planted / "in_it");
    EXPECT_THAT(tests::message_of<std::system_error>([&] { folder_.open(); }),
                AllOf(HasSubstr(planted.string()), HasSubstr("remove it"), Not(HasSubstr("filesystem error"))));
    if (suffix == std::string(".part")) {
      EXPECT_THAT(tests::message_of<std::system_error>([&] { remove_cached(folder_.cache(), ""); }),
                  HasSubstr(planted.string() + ": cannot be removed"));
    }
    fs::remove_all(planted);
  }
}

TEST_F(OpenFolder, WarnsOfACacheOfOthers) {
  folder_.add_cats_and_dogs();
  folder_.open();
  EXPECT_EQ(fs::status(folder_.cache()).permissions(), fs::perms::owner_all);
  EXPECT_THAT(folder_.said(), Not(HasSubstr("other users")));
  fs::permissions(folder_.cache(), fs::perms::group_write, fs::perm_options::add);
  folder_.open();
  EXPECT_THAT(folder_.said(),
              AllOf(HasSubstr(folder_.cache().string()), HasSubstr("other users may write"), HasSubstr("chmod 700")));
}

TEST_F(OpenFolder, NamesBrokenImagesOrSkipsThem) {
  folder_.add_cats_and_dogs();
  folder_.add("train/cat/0.png", Bytes{});
  folder_.add("train/dog/x.jpg", Bytes{'G', 'I', 'F', '8', '9', 'a', 0, 0});
  EXPECT_THAT(refusal(), AllOf(HasSubstr("train: 2 of 6 images cannot be read"), HasSubstr("cat/0.png: is empty"),
                               HasSubstr("dog/x.jpg: is a GIF"), HasSubstr("--broken skip")));
  FolderSpec skipping = folder_.spec();
  skipping.on_broken = OnBroken::skip;
  folder_.said();
  const auto set = open_folder(skipping, Split::train);
  EXPECT_THAT(folder_.said(),
              AllOf(HasSubstr("left out: 2 of 6 images"), HasSubstr("cat/0.png"), Not(HasSubstr("preparing"))))
      << "they were decoded before";
  ASSERT_EQ(set->size(), 4);
  EXPECT_EQ(set->pixels(0)[0], 10);
  EXPECT_EQ(set->pixels(3)[0], 200);
  EXPECT_EQ(set->label(2), 1);
}

TEST_F(OpenFolder, RejectsAClassWithoutReadableImages) {
  folder_.add("train/a/1.png", 1);
  folder_.add("train/b/1.png", Bytes{1, 2, 3});
  FolderSpec skipping = folder_.spec();
  skipping.on_broken = OnBroken::skip;
  EXPECT_THAT(tests::message_of<DataError>([&] { open_folder(skipping, Split::train); }),
              HasSubstr("train/b: holds no image that can be read"));
}

TEST_F(OpenFolder, ReadsAgainWhatCouldNotBeOpened) {
  folder_.add_cats_and_dogs();
  fs::create_symlink(folder_.path() / "late.png", folder_.path() / "train/cat/3.png");
  EXPECT_THAT(refusal(), HasSubstr("cat/3.png: cannot be opened"));
  folder_.add("late.png", 5);
  EXPECT_EQ(folder_.open()->size(), 5);
}

TEST_F(OpenFolder, NamesWhatIsMissing) {
  EXPECT_THAT(refusal(), AllOf(HasSubstr("images: cannot be opened"), HasSubstr("--data-dir")));
  folder_.add("notes.txt", Bytes{1});
  EXPECT_THAT(refusal(), HasSubstr("holds no folder train; put the training images into train/CLASS"));
  folder_.add("Train/a/1.png", 1);
  EXPECT_THAT(refusal(), HasSubstr("holds no folder train; rename its folder Train to train"));
  folder_.add("train/a/1.png", 1);
  folder_.add("train/b/1.png", 1);
  EXPECT_THAT(refusal(Split::test), AllOf(HasSubstr("neither a folder test nor val"), HasSubstr("--val-split")));
  EXPECT_FALSE(has_test_folder(folder_.path()));
  folder_.add("val/a/1.png", 1);
  EXPECT_EQ(folder_.open(Split::test)->size(), 1);
  EXPECT_THAT(folder_.said(), Not(HasSubstr("val is not used")));
  folder_.add("test/b/1.png", 1);
  folder_.open(Split::test);
  EXPECT_THAT(folder_.said(), HasSubstr("test is the test set, and val is not used"));
}

TEST_F(OpenFolder, EscapesNamesOfFiles) {
  folder_.add_cats_and_dogs();
  folder_.add("train/cat/a\nb.png", Bytes{});
  EXPECT_THAT(refusal(), HasSubstr("cat/a\\x0ab.png: is empty"));
}

/// macOS writes names of files in NFD, others in NFC: both are shown alike.
TEST_F(OpenFolder, TellsNamesInOtherFormsOfUnicode) {
  const std::string composed = "caf\xc3\xa9", decomposed = "cafe\xcc\x81", hangul = "\xea\xb0\x80";
  folder_.add("train/" + composed + "/1.png", 1);
  folder_.add("train/b/1.png", 2);
  folder_.add("test/" + decomposed + "/1.png", 1);
  EXPECT_THAT(refusal(Split::test), AllOf(HasSubstr("is a class that the training set lacks"),
                                          HasSubstr("; " + composed + " looks like it and has other bytes")));
  folder_.open();
  EXPECT_THAT(folder_.said(), Not(HasSubstr("looks like it")));
  folder_.add("train/" + decomposed + "/1.png", 1);
  folder_.open();
  EXPECT_THAT(folder_.said(), HasSubstr("looks like it and has other bytes"));
  EXPECT_EQ(unicode_hint(composed, std::vector<std::string>{hangul, "cafe", composed, "caf\xc3\xa8"}), "");
  EXPECT_NE(unicode_hint(hangul, std::vector<std::string>{"\xe1\x84\x80\xe1\x85\xa1"}), "");
}

TEST_F(OpenFolder, KnowsTheFolderOfOneSplit) {
  folder_.add_cats_and_dogs();
  FolderSpec spec = folder_.spec();
  spec.folder = folder_.path() / "train" / "";
  EXPECT_THAT(tests::message_of<DataError>([&] { open_folder(spec, Split::train); }),
              HasSubstr("name the folder that it is in with --data-dir " + folder_.path().string()));
}

TEST_F(OpenFolder, LeavesNothingWhenItFails) {
  folder_.add_cats_and_dogs();
  FolderSpec spec = folder_.spec();
  spec.cache = folder_.add("a_file", Bytes{1}) / "cache";
  EXPECT_THROW(open_folder(spec, Split::train), std::system_error);
  spec = folder_.spec();
  spec.settings = {.size = 8, .resize = 4};
  EXPECT_THROW(open_folder(spec, Split::train), InvalidArgument);
}

TEST_F(OpenFolder, RemovesWhatIsAskedFor) {
  folder_.add_cats_and_dogs();
  const auto set = folder_.open();
  remove_cached(folder_.cache(), cached_images(folder_.cache()).at(0).key);
  EXPECT_THAT(cached_images(folder_.cache()), IsEmpty());
  EXPECT_EQ(set->pixels(0)[0], 10) << "open images stay";
  remove_cached(folder_.cache(), "");
  EXPECT_TRUE(fs::is_empty(folder_.cache()));
  EXPECT_EQ(folder_.open()->size(), 4) << "they are made again";
}

}  // namespace
}  // namespace gradring::data
