// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/checkpoint_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "tests/support/temp_folder.h"
#include "tests/train/records/checkpoint/small_checkpoint.h"
#include "tests/train/support/faulty_files.h"
#include "tests/train/support/file_size_limit.h"
#include "tests/train/support/memory_disk.h"
#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/safetensors.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using tests::Fault;
using tests::FaultyFiles;
using tests::MemoryDisk;

class CheckpointDirectoryTest : public testing::Test {
 protected:
  CheckpointDirectoryTest() { disk_.make_folder("/run"); }

  CheckpointDirectory keeping(int last, int best) { return {disk_, "/run/c", {.keep_last = last, .keep_best = best}}; }

  void save_all(CheckpointDirectory directory, const std::vector<std::pair<std::int64_t, double>>& steps) {
    for (const auto& [step, score] : steps) EXPECT_THAT(directory.save(small_checkpoint(step, score)), IsEmpty());
  }

  MemoryDisk disk_;
};

TEST_F(CheckpointDirectoryTest, IsEmptyBeforeTheFirstSave) {
  const CheckpointDirectory directory = keeping(0, 1);
  EXPECT_THAT(directory.entries(), IsEmpty());
  EXPECT_EQ(directory.newest_valid().found, std::nullopt);
  EXPECT_FALSE(disk_.exists("/run/c"));
}

TEST_F(CheckpointDirectoryTest, UpdatesLatestAndBest) {
  CheckpointDirectory directory = keeping(0, 1);
  save_all(directory, {{1, 0.5}});
  EXPECT_EQ(disk_.read_link("/run/c/latest"), "step-1");
  EXPECT_EQ(disk_.read_link("/run/c/best"), "step-1");
  save_all(directory, {{2, 0.9}, {3, 0.7}});
  EXPECT_EQ(disk_.read_link("/run/c/latest"), "step-3");
  EXPECT_EQ(disk_.read_link("/run/c/best"), "step-2");
  save_all(directory, {{4, 0.9}});
  EXPECT_EQ(disk_.read_link("/run/c/best"), "step-4") << "the newer of two equal scores";
  EXPECT_THAT(disk_.list("/run/c"), UnorderedElementsAre("step-1", "step-2", "step-3", "step-4", "latest", "best"));
}

TEST_F(CheckpointDirectoryTest, HasNoBestLinkWithoutScores) {
  CheckpointDirectory directory = keeping(0, 1);
  EXPECT_THAT(directory.save(small_checkpoint(1)), IsEmpty());
  EXPECT_THAT(disk_.list("/run/c"), UnorderedElementsAre("step-1", "latest"));
}

TEST_F(CheckpointDirectoryTest, KeepsLastAndBest) {
  save_all(keeping(2, 1), {{10, 0.9}, {20, 0.1}, {30, 0.2}, {40, 0.3}});
  EXPECT_THAT(disk_.list("/run/c"), UnorderedElementsAre("step-10", "step-30", "step-40", "latest", "best"));
  save_all(keeping(1, 2), {{100, 0.1}});
  EXPECT_THAT(disk_.list("/run/c"), UnorderedElementsAre("step-10", "step-40", "step-100", "latest", "best"));
  save_all(keeping(1, 0), {{200, 0.1}});
  EXPECT_THAT(disk_.list("/run/c"), UnorderedElementsAre("step-10", "step-200", "latest", "best"))
      << "the target of best stays";
}

TEST_F(CheckpointDirectoryTest, OrdersStepsAsNumbers) {
  save_all(keeping(0, 1), {{9, 0}, {10, 0}, {100, 0}});
  std::vector<std::int64_t> steps;
  for (const CheckpointEntry& entry : keeping(0, 1).entries()) steps.push_back(entry.step);
  EXPECT_THAT(steps, ElementsAre(100, 10, 9));
}

TEST_F(CheckpointDirectoryTest, IgnoresOtherNames) {
  disk_.make_folder("/run/c");
  for (const char* name : {"step-", "step-007", "step-x", "step-1.bak", "step--1", "notes"})
    write_new_file(disk_, std::filesystem::path("/run/c") / name, "mine");
  save_all(keeping(1, 0), {{1, 0}, {2, 0}});
  EXPECT_THAT(disk_.list("/run/c"), UnorderedElementsAre("step-", "step-007", "step-x", "step-1.bak", "step--1",
                                                         "notes", "step-2", "latest"));
}

TEST_F(CheckpointDirectoryTest, ReplacesTheSameStep) {
  CheckpointDirectory directory = keeping(0, 1);
  save_all(directory, {{1, 0.5}});
  Checkpoint other = small_checkpoint(1, 0.6);
  other.model[0].bytes[0] ^= std::byte{1};
  EXPECT_THAT(directory.save(other), IsEmpty());
  EXPECT_THAT(disk_.list("/run/c"), UnorderedElementsAre("step-1", "latest", "best"));
  expect_equal(read_checkpoint(disk_, "/run/c/step-1"), other);
}

TEST_F(CheckpointDirectoryTest, ReportsPassedOverCheckpoints) {
  CheckpointDirectory directory = keeping(0, 1);
  save_all(directory, {{1, 0}, {2, 0}, {3, 0}});
  disk_.bytes_of("/run/c/step-3/state.safetensors").back() ^= std::byte{1};
  disk_.make_folder("/run/c/step-4.partial");
  const NewestValid newest = directory.newest_valid();
  ASSERT_TRUE(newest.found);
  EXPECT_EQ(newest.found->folder, "/run/c/step-2");
  ASSERT_EQ(newest.passed_over.size(), 2u);
  EXPECT_EQ(newest.passed_over[0].folder, "/run/c/step-4.partial");
  EXPECT_EQ(newest.passed_over[0].why, "was never finished");
  EXPECT_EQ(newest.passed_over[1].folder, "/run/c/step-3");
  EXPECT_THAT(newest.passed_over[1].why, HasSubstr("state.safetensors is corrupt: tensor '"));
}

TEST_F(CheckpointDirectoryTest, FindsReplacedCheckpointWithoutSuccessor) {
  CheckpointDirectory directory = keeping(0, 1);
  save_all(directory, {{1, 0}});
  disk_.rename("/run/c/step-1", "/run/c/step-1.replaced");
  EXPECT_EQ(directory.newest_valid().found->folder, "/run/c/step-1.replaced");
  save_all(directory, {{1, 0}});
  EXPECT_EQ(directory.newest_valid().found->folder, "/run/c/step-1");
  EXPECT_FALSE(disk_.exists("/run/c/step-1.replaced"));
}

TEST_F(CheckpointDirectoryTest, IgnoresAbandonedCheckpoints) {
  CheckpointDirectory directory = keeping(2, 1);
  save_all(directory, {{10, 0.1}, {20, 0.2}, {30, 0.9}});
  EXPECT_THAT(directory.abandon_after(20), IsEmpty());
  EXPECT_EQ(disk_.read_link("/run/c/latest"), "step-20");
  EXPECT_EQ(disk_.read_link("/run/c/best"), "step-20");
  EXPECT_EQ(directory.newest_valid().found->step, 20);
  EXPECT_TRUE(disk_.exists("/run/c/abandoned-step-30"));
  save_all(directory, {{23, 0.3}, {26, 0.4}});
  EXPECT_EQ(directory.newest_valid().found->step, 26);
  EXPECT_TRUE(disk_.exists("/run/c/step-23")) << "one of the last two that are not abandoned";
  EXPECT_TRUE(disk_.exists("/run/c/abandoned-step-30"));
  save_all(directory, {{30, 0.5}});
  EXPECT_THAT(directory.abandon_after(26), IsEmpty());
  EXPECT_EQ(directory.newest_valid().found->step, 26);
  EXPECT_THAT(directory.abandon_after(0), IsEmpty());
  EXPECT_FALSE(directory.newest_valid().found);
  EXPECT_FALSE(disk_.exists("/run/c/latest"));
  EXPECT_FALSE(disk_.exists("/run/c/best"));
  directory.remove_abandoned();
  EXPECT_THAT(disk_.list("/run/c"), IsEmpty());
}

TEST_F(CheckpointDirectoryTest, KeepsEarlierAbandonedCheckpoints) {
  CheckpointDirectory directory = keeping(0, 1);
  save_all(directory, {{10, 0.1}});
  for (const double score : {0.2, 0.3, 0.4}) {
    save_all(directory, {{20, score}});
    EXPECT_THAT(directory.abandon_after(10), IsEmpty());
  }
  EXPECT_THAT(disk_.list("/run/c"), UnorderedElementsAre("step-10", "abandoned-step-20", "abandoned-step-20-2",
                                                         "abandoned-step-20-3", "latest", "best"));
  EXPECT_EQ(read_checkpoint(disk_, "/run/c/abandoned-step-20").score, 0.2);
  EXPECT_EQ(read_checkpoint(disk_, "/run/c/abandoned-step-20-2").score, 0.3);
  EXPECT_EQ(read_checkpoint(disk_, "/run/c/abandoned-step-20-3").score, 0.4);
  EXPECT_EQ(directory.newest_valid().found->step, 10);
  directory.remove_abandoned();
  EXPECT_THAT(disk_.list("/run/c"), UnorderedElementsAre("step-10", "latest", "best"));
}

TEST_F(CheckpointDirectoryTest, RestoresReplacedCheckpointOnResume) {
  CheckpointDirectory directory = keeping(0, 1);
  save_all(directory, {{10, 0.1}, {20, 0.2}, {30, 0.3}});
  for (const char* step : {"20", "30"}) {  // two saves were killed between their two renames
    const std::string folder = std::string("/run/c/step-") + step;
    disk_.rename(folder, folder + ".replaced");
  }
  EXPECT_THAT(directory.abandon_after(20), IsEmpty());
  EXPECT_THAT(disk_.list("/run/c"), UnorderedElementsAre("step-10", "step-20", "abandoned-step-30", "latest", "best"));
  EXPECT_EQ(disk_.read_link("/run/c/latest"), "step-20");
  EXPECT_EQ(disk_.read_link("/run/c/best"), "step-20");
}

TEST_F(CheckpointDirectoryTest, AbandonsNewerOfTwoCheckpointsOfOneStep) {
  CheckpointDirectory directory = keeping(0, 1);
  save_all(directory, {{10, 0.1}, {30, 0.2}});
  disk_.rename("/run/c/step-30", "/run/c/step-30.replaced");
  save_all(directory, {{30, 0.3}});
  disk_.make_folder("/run/c/step-30.replaced");
  EXPECT_THAT(directory.abandon_after(10), IsEmpty());
  EXPECT_THAT(disk_.list("/run/c"), UnorderedElementsAre("step-10", "abandoned-step-30", "latest", "best"));
  EXPECT_EQ(read_checkpoint(disk_, "/run/c/abandoned-step-30").score, 0.3);
}

TEST_F(CheckpointDirectoryTest, DoesNotTakeReadErrorsForDamage) {
  save_all(keeping(0, 1), {{1, 0.5}, {2, 0.4}});
  FaultyFiles faultless(disk_, {});
  EXPECT_EQ(CheckpointDirectory(faultless, "/run/c").newest_valid().found->step, 2);
  int errors = 0;
  for (int call = 1; call <= faultless.calls(); ++call)
    for (int code : {EIO, ESTALE, EMFILE, EACCES}) {
      SCOPED_TRACE(testing::Message() << "call " << call << ", " << std::generic_category().message(code));
      FaultyFiles files(disk_, {.kind = Fault::Kind::error, .at_call = call, .code = code});
      try {
        EXPECT_EQ(CheckpointDirectory(files, "/run/c").newest_valid().found->step, 2);
      } catch (const FileError& error) {
        EXPECT_EQ(error.code(), code);
        ++errors;
      }
    }
  EXPECT_GT(errors, 4 * 8) << "three files are opened and read";
}

TEST_F(CheckpointDirectoryTest, RejectsCheckpointNamedForAnotherStep) {
  CheckpointDirectory directory = keeping(0, 1);
  save_all(directory, {{10, 0.1}, {20, 0.2}});
  disk_.rename("/run/c/step-10", "/run/c/step-30");
  const NewestValid newest = directory.newest_valid();
  EXPECT_EQ(newest.found->step, 20);
  ASSERT_EQ(newest.passed_over.size(), 1u);
  EXPECT_THAT(newest.passed_over[0].why,
              HasSubstr("step-30/meta.json has step 10, its folder is named for step 30; rename the folder to "
                        "step-10"));
  EXPECT_THAT(refusal([&] { read_checkpoint(disk_, "/run/c/step-30/"); }), HasSubstr("has step 10"));
  disk_.rename("/run/c/step-30", "/run/c/copy");
  EXPECT_EQ(read_checkpoint(disk_, "/run/c/copy").step, 10) << "another name implies no step";
}

/// `gradring ckpt prune` during a run: each removes checkpoints that the other is about to remove.
TEST_F(CheckpointDirectoryTest, AllowsConcurrentPruning) {
  const auto prune = [](FileSystem& files) {
    CheckpointDirectory directory(files, "/run/c", {.keep_last = 1, .keep_best = 0});
    return directory.prune(directory.unwanted());
  };
  const auto save = [](FileSystem& files) {
    return CheckpointDirectory(files, "/run/c", {.keep_last = 2, .keep_best = 1}).save(small_checkpoint(5, 0.5));
  };
  const auto run_beside = [&](const auto& first, const auto& other) {
    int calls = 1;
    for (int call = 1; call <= calls; ++call) {
      SCOPED_TRACE(testing::Message() << "call " << call);
      MemoryDisk disk;
      disk.make_folder("/run");
      for (std::int64_t step : {1, 2, 3, 4})
        EXPECT_THAT(CheckpointDirectory(disk, "/run/c").save(small_checkpoint(step, 1.0 / static_cast<double>(step))),
                    IsEmpty());
      FaultyFiles files(disk, {.at_call = call, .meanwhile = [&] { EXPECT_THAT(other(disk), IsEmpty()); }});
      EXPECT_THAT(first(files), IsEmpty());
      calls = files.calls();
      EXPECT_EQ(CheckpointDirectory(disk, "/run/c").newest_valid().found->step, 5);
      EXPECT_EQ(disk.read_link("/run/c/latest"), "step-5");
      EXPECT_EQ(disk.read_link("/run/c/best"), "step-1");
      EXPECT_TRUE(disk.exists("/run/c/step-1"));
    }
  };
  run_beside(save, prune);
  run_beside(prune, save);
}

TEST_F(CheckpointDirectoryTest, RemovesLeftoversOfEarlierSaves) {
  CheckpointDirectory directory = keeping(0, 1);
  save_all(directory, {{1, 0}});
  for (const char* name : {"step-5.partial", "step-0.removing"}) {
    disk_.make_folder(std::filesystem::path("/run/c") / name);
    write_new_file(disk_, std::filesystem::path("/run/c") / name / "model.safetensors", "half");
  }
  save_all(directory, {{2, 0}});
  EXPECT_THAT(disk_.list("/run/c"), UnorderedElementsAre("step-1", "step-2", "latest", "best"));
}

TEST_F(CheckpointDirectoryTest, NeitherCountsNorPrunesDamagedCheckpoints) {
  CheckpointDirectory directory = keeping(2, 0);
  save_all(directory, {{1, 0}, {2, 0}});
  disk_.bytes_of("/run/c/step-2/meta.json").back() ^= std::byte{1};
  save_all(directory, {{3, 0}});
  EXPECT_THAT(disk_.list("/run/c"), UnorderedElementsAre("step-1", "step-2", "step-3", "latest"));
}

TEST_F(CheckpointDirectoryTest, RejectsNegativeSteps) {
  EXPECT_THROW((void)keeping(0, 1).save(small_checkpoint(-1)), InvalidArgument);
}

/// A user may have moved a checkpoint to another disk, and left a link.
TEST(CheckpointDirectoryOnDisk, DoesNotFollowLinksWhenRemoving) {
  const tests::TempFolder folder;
  const fs::path root = folder.path() / "c", archive = folder.path() / "archive", photos = folder.path() / "photos";
  PosixFileSystem files;
  CheckpointDirectory directory(files, root, {.keep_last = 1, .keep_best = 0});
  EXPECT_THAT(directory.save(small_checkpoint(10)), IsEmpty());
  fs::rename(root / "step-10", archive);
  fs::create_symlink(archive, root / "step-10");
  fs::create_directory(photos);
  std::ofstream(photos / "precious") << "x";
  for (const char* name : {"step-5.partial", "step-6.removing", "step-7.replaced"})
    fs::create_symlink(photos, root / name);

  EXPECT_THAT(directory.save(small_checkpoint(20)),
              ElementsAre(HasSubstr("step-10 is a symbolic link and was not removed")));
  EXPECT_TRUE(fs::is_symlink(root / "step-10"));
  EXPECT_TRUE(fs::exists(archive / "model.safetensors"));
  EXPECT_TRUE(fs::exists(photos / "precious"));
  EXPECT_FALSE(fs::is_symlink(root / "step-5.partial"));
}

TEST_F(CheckpointDirectoryTest, RemovesNoFilesOfTheUser) {
  CheckpointDirectory directory = keeping(1, 0);
  save_all(directory, {{10, 0.1}});
  write_new_file(disk_, "/run/c/step-10/notes.txt", "mine");
  const auto expected = ElementsAre(HasSubstr("step-10 holds notes.txt, which is no part of a checkpoint"));
  EXPECT_THAT(directory.save(small_checkpoint(20, 0.1)), expected);
  EXPECT_THAT(directory.abandon_after(5), IsEmpty());
  EXPECT_THAT(directory.remove_abandoned(), expected);
  EXPECT_THAT(disk_.list("/run/c"), UnorderedElementsAre("abandoned-step-10"));
  EXPECT_TRUE(disk_.exists("/run/c/abandoned-step-10/notes.txt"));
}

TEST(CheckpointDirectoryOnDisk, SavesLinksAndPrunes) {
  const tests::TempFolder folder;
  PosixFileSystem files;
  CheckpointDirectory directory(files, folder.path() / "checkpoints", {.keep_last = 1, .keep_best = 1});
  for (std::int64_t step : {1, 2, 3})
    EXPECT_THAT(directory.save(small_checkpoint(step, 1.0 / static_cast<double>(step))), IsEmpty());
  EXPECT_THAT(files.list(folder.path() / "checkpoints"), UnorderedElementsAre("step-1", "step-3", "latest", "best"));
  expect_equal(read_checkpoint(files, folder.path() / "checkpoints" / "latest"), small_checkpoint(3, 1.0 / 3));
  expect_equal(read_checkpoint(files, folder.path() / "checkpoints" / "best"), small_checkpoint(1, 1.0));
  EXPECT_EQ(directory.newest_valid().found->step, 3);
}

TEST(CheckpointDirectoryOnDisk, KeepsPreviousCheckpointOnFullDisk) {
  const tests::TempFolder folder;
  PosixFileSystem files;
  CheckpointDirectory directory(files, folder.path() / "checkpoints");
  EXPECT_THAT(directory.save(small_checkpoint(1)), IsEmpty());
  {
    const tests::FileSizeLimit full(400);
    try {
      (void)directory.save(small_checkpoint(2));
      ADD_FAILURE() << "400 bytes are not enough";
    } catch (const FileError& error) {
      EXPECT_EQ(error.code(), EFBIG);
      EXPECT_THAT(error.what(), HasSubstr("step-2.partial/"));
    }
  }
  EXPECT_THAT(files.list(folder.path() / "checkpoints"), UnorderedElementsAre("step-1", "latest"));
  EXPECT_EQ(directory.newest_valid().found->step, 1);
  EXPECT_THAT(directory.save(small_checkpoint(2)), IsEmpty());
}

TEST(CheckpointDirectoryOnDisk, ThrowsIfFolderCannotBeCreated) {
  PosixFileSystem files;
  CheckpointDirectory directory(files, "/no/such/run/checkpoints");
  EXPECT_THROW((void)directory.save(small_checkpoint(1)), FileError);
}

}  // namespace
}  // namespace gradring::train
