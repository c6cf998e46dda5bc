// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/image_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "data/files/byte_source.h"
#include "tests/data/support/image_folder.h"
#include "tests/data/support/message_of.h"

namespace gradring::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

class Listing : public testing::Test {
 protected:
  void add(const std::string& path) const { folder_.add(path, tests::Bytes{1, 2, 3}); }
  ImageListing listing(Split split = Split::train) const {
    const fs::path train = split_folder(folder_.path(), Split::train);
    return list_images(split_folder(folder_.path(), split), split, class_folders_in(train));
  }
  std::vector<std::string> paths() const {
    std::vector<std::string> all;
    for (const ImageFile& file : listing().files) all.push_back(file.path);
    return all;
  }
  std::string refusal(Split split = Split::train) const {
    return tests::message_of<DataError>([&] { listing(split); });
  }

  tests::ImageFolder folder_;
};

TEST_F(Listing, HasTheOrderOfImageFolder) {
  for (const char* path :
       {"b/1.png", "b/10.jpg", "b/2.JPEG", "b/a/z.png", "b/a-b/y.png", "b/a/c/x.png", "B/1.jpg", "a/9.png"})
    add("train/" + std::string(path));
  EXPECT_THAT(class_folders_in(folder_.path() / "train"), ElementsAre("B", "a", "b"));
  EXPECT_THAT(paths(), ElementsAre("B/1.jpg", "a/9.png", "b/1.png", "b/10.jpg", "b/2.JPEG", "b/a/z.png", "b/a-b/y.png",
                                   "b/a/c/x.png"))
      << "sorted(os.walk) compares paths: '-' comes before '/'";
}

TEST_F(Listing, LeavesOutWhatIsHiddenAndCountsOtherFiles) {
  for (const char* path :
       {"a/1.png", "a/._1.png", "a/notes.txt", "a/2.bmp", "a/png", ".git/1.png", "b/1.png", "b/.x/2.png"})
    add("train/" + std::string(path));
  add("train/labels.csv");
  EXPECT_THAT(paths(), ElementsAre("a/1.png", "b/1.png"));
  EXPECT_EQ(listing().others, 4);
}

TEST_F(Listing, OfAnyFolderIsThatOfAClass) {
  for (const char* path :
       {"train/a/2.png", "train/a/.x/1.png", "train/a/._2.png", "train/a/b/1.jpg", "train/a/notes.txt"})
    add(path);
  add("train/b/1.png");
  const ImageListing found = list_images(folder_.path() / "train/a");
  ASSERT_EQ(found.files.size(), 2u);
  EXPECT_EQ("a/" + found.files[0].path, paths()[0]);
  EXPECT_EQ("a/" + found.files[1].path, paths()[1]);
  EXPECT_EQ(describe_others(found), "1 file is not used, such as notes.txt: images are .jpg, .jpeg or .png files");
  fs::create_directories(folder_.path() / "empty");
  for (const char* none : {"empty", "missing"}) EXPECT_THROW(list_images(folder_.path() / none), DataError) << none;
}

TEST_F(Listing, SaysWhatIsNotARegularFile) {
  add("train/b/1.png");
  add("train/c/1.png");
  ASSERT_EQ(::mkfifo((folder_.path() / "train/b/2.png").c_str(), 0600), 0);
  EXPECT_EQ(listing().one_other, "b/2.png (not a regular file)");
  fs::create_symlink("nothing", folder_.path() / "train/a");
  EXPECT_EQ(listing().one_other, "a (a link to nothing)");
  EXPECT_EQ(listing().others, 2);
}

TEST_F(Listing, KnowsSizesTimesAndLabels) {
  add("train/a/1.png");
  add("train/b/1.png");
  const ImageListing found = listing();
  EXPECT_EQ(found.files[0].bytes, 3u);
  EXPECT_GT(found.files[0].modified, 0);
  EXPECT_EQ(found.files[0].label, 0);
  EXPECT_EQ(found.files[1].label, 1);
}

TEST_F(Listing, FollowsLinksButNotInCircles) {
  add("train/a/1.png");
  add("more/2.png");
  fs::create_directory_symlink(folder_.path() / "more", folder_.path() / "train/b");
  fs::create_symlink(folder_.path() / "nothing", folder_.path() / "train/a/3.png");
  EXPECT_THAT(paths(), ElementsAre("a/1.png", "a/3.png", "b/2.png"));
  fs::create_directory_symlink(folder_.path() / "train/a", folder_.path() / "train/a/again");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("train/a/again: is a link to a folder that it is in"), HasSubstr("remove")));
}

TEST_F(Listing, TakesTestBeforeVal) {
  EXPECT_EQ(split_folder(folder_.path(), Split::test), fs::path());
  add("val/a/1.png");
  EXPECT_EQ(split_folder(folder_.path(), Split::test), folder_.path() / "val");
  add("test/a/1.png");
  EXPECT_EQ(split_folder(folder_.path(), Split::test), folder_.path() / "test");
}

TEST_F(Listing, TestImagesHaveTheLabelsOfTraining) {
  for (const char* path : {"train/a/1.png", "train/b/1.png", "train/c/1.png", "test/c/1.png"}) add(path);
  ASSERT_EQ(listing(Split::test).files.size(), 1u);
  EXPECT_EQ(listing(Split::test).files[0].label, 2);
  add("test/d/1.png");
  EXPECT_THAT(refusal(Split::test), AllOf(HasSubstr("test/d: is a class that the training set lacks: it has a, b, c")));
}

TEST_F(Listing, RejectsTooFewClassesAndEmptyOnes) {
  fs::create_directories(folder_.path() / "train");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("train: holds no folders"), HasSubstr("at least two classes")));
  add("train/a/1.png");
  EXPECT_THAT(refusal(), HasSubstr("holds one folder, 'a': one class"));
  add("train/\xff/1.png");
  EXPECT_THAT(refusal(), HasSubstr("its name is not printable UTF-8; rename it"));
  fs::remove_all(folder_.path() / "train/\xff");
  add("train/b/notes.txt");
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("train/b: holds no .jpg, .jpeg or .png file"), HasSubstr("remove the folder")));
  add("train/b/1.png");
  fs::create_directories(folder_.path() / "test/a");
  EXPECT_THAT(refusal(Split::test), HasSubstr("test: holds no .jpg"));
}

TEST_F(Listing, NamesAFolderThatCannotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read every folder";
  add("train/a/1.png");
  add("train/b/1.png");
  ASSERT_EQ(::chmod((folder_.path() / "train/b").c_str(), 0), 0);
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("train/b: cannot be listed (Permission denied)"), HasSubstr("you may read it")));
  ::chmod((folder_.path() / "train/b").c_str(), 0755);
}

}  // namespace
}  // namespace gradring::data
