// SPDX-License-Identifier: Apache-2.0
// The list of `ckpt ls`, and what pruning removes from it.
#include "train/records/checkpoint/checkpoint_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/train/records/checkpoint/small_checkpoint.h"
#include "tests/train/support/faulty_files.h"
#include "tests/train/support/memory_disk.h"
#include "train/records/checkpoint/file_system.h"

namespace gradring::train {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;
using tests::Fault;
using tests::FaultyFiles;

class Listing : public testing::Test {
 protected:
  Listing() {
    disk_.make_folder("/run");
    for (const auto& [step, score] : {std::pair{10, 0.9}, {20, 0.1}, {100, 0.5}})
      EXPECT_THAT(all_.save(small_checkpoint(step, score)), IsEmpty());
  }

  CheckpointDirectory keeping(int last, int best) { return {disk_, "/run/c", {.keep_last = last, .keep_best = best}}; }
  std::vector<std::int64_t> unwanted(int last, int best) {
    std::vector<std::int64_t> steps;
    for (const CheckpointEntry& entry : keeping(last, best).unwanted()) steps.push_back(entry.step);
    return steps;
  }
  void damage(const std::string& folder) {
    disk_.remove_file("/run/c/" + folder + "/" + kMetaFile);
    write_new_file(disk_, "/run/c/" + folder + "/" + kMetaFile, "{}");
  }

  tests::MemoryDisk disk_;
  CheckpointDirectory all_{disk_, "/run/c", {.keep_last = 0, .keep_best = 1}};
};

TEST_F(Listing, ShowsScoresMarksAndSizes) {
  const auto listed = list_checkpoints(disk_, "/run/c");
  ASSERT_EQ(listed.size(), 3u);
  EXPECT_EQ(listed[0].folder.step, 100);
  EXPECT_TRUE(listed[0].is_latest && !listed[0].is_best);
  EXPECT_EQ(listed[0].meta, MetaState::valid);
  EXPECT_TRUE(listed[2].is_best && !listed[2].is_latest);
  EXPECT_EQ(listed[2].score, 0.9);
  std::uint64_t bytes = 0;
  for (const char* file : {kModelFile, kStateFile, kMetaFile})
    bytes += disk_.open(std::string("/run/c/step-10/") + file)->size();
  EXPECT_EQ(listed[2].bytes, bytes);
}

TEST_F(Listing, ShowsDamagedAndPartialCheckpoints) {
  damage("step-20");
  disk_.make_folder("/run/c/step-120.partial");
  const auto listed = list_checkpoints(disk_, "/run/c");
  ASSERT_EQ(listed.size(), 4u);
  EXPECT_EQ(listed[0].folder.state, FolderState::partial);
  EXPECT_EQ(listed[2].meta, MetaState::damaged);
  EXPECT_EQ(listed[2].score, std::nullopt);
}

TEST_F(Listing, ShowsEveryAbandonedCheckpointOfAStep) {
  for (const char* name : {"abandoned-step-20", "abandoned-step-20-2", "abandoned-step-20-10"})
    disk_.make_folder(std::filesystem::path("/run/c") / name);
  for (const char* other : {"abandoned-step-20-", "abandoned-step-20-1", "abandoned-step-20-02", "abandoned-step-20x2",
                            "step-20-2", "step-20-2.partial"})
    disk_.make_folder(std::filesystem::path("/run/c") / other);
  std::vector<std::string> abandoned;
  for (const ListedCheckpoint& listed : list_checkpoints(disk_, "/run/c"))
    if (listed.folder.state == FolderState::abandoned) abandoned.push_back(listed.folder.path.filename());
  EXPECT_THAT(abandoned, ElementsAre("abandoned-step-20", "abandoned-step-20-2", "abandoned-step-20-10"));
  EXPECT_EQ(step_folder_name(20, FolderState::abandoned, 2), "abandoned-step-20-2");
  EXPECT_EQ(step_folder_at("/run/c/abandoned-step-20-2")->step, 20);
}

TEST_F(Listing, PruneRemovesUnwanted) {
  EXPECT_THAT(unwanted(0, 1), IsEmpty()) << "0 keeps all";
  EXPECT_THAT(unwanted(1, 0), ElementsAre(20)) << "the target of best stays";
  EXPECT_THAT(unwanted(2, 1), IsEmpty());
  EXPECT_THAT(keeping(1, 0).prune(keeping(1, 0).unwanted()), IsEmpty());
  EXPECT_THAT(disk_.list("/run/c"), UnorderedElementsAre("step-10", "step-100", "latest", "best"));
}

TEST_F(Listing, PruneKeepsUnreadable) {
  damage("step-20");
  EXPECT_THAT(unwanted(1, 0), IsEmpty());
}

TEST_F(Listing, PruneKeepsReplacedWithoutSuccessor) {
  disk_.rename("/run/c/step-100",
               "/run/c/step-100.replaced");  // as after a power loss between the two renames of a save
  EXPECT_THAT(keeping(3, 1).prune({}), IsEmpty());
  EXPECT_TRUE(disk_.exists("/run/c/step-100.replaced"));
  EXPECT_EQ(all_.newest_valid().found->step, 100);
  EXPECT_THAT(all_.save(small_checkpoint(100, 0.5)), IsEmpty());
  EXPECT_FALSE(disk_.exists("/run/c/step-100.replaced"));
}

TEST_F(Listing, ShowsOthersBesideInvalidEntries) {
  write_new_file(disk_, "/run/c/step-30", "a file");
  disk_.make_link("nowhere", "/run/c/step-40");
  disk_.make_folder("/run/c/step-20/notes");
  disk_.remove_file("/run/c/best");
  write_new_file(disk_, "/run/c/best", "no link");
  std::vector<std::pair<std::int64_t, MetaState>> found;
  for (const ListedCheckpoint& listed : list_checkpoints(disk_, "/run/c"))
    found.emplace_back(listed.folder.step, listed.meta);
  EXPECT_THAT(found, ElementsAre(Pair(100, MetaState::valid), Pair(40, MetaState::damaged),
                                 Pair(30, MetaState::damaged), Pair(20, MetaState::valid), Pair(10, MetaState::valid)));
}

TEST_F(Listing, DoesNotTakeReadErrorsForDamage) {
  int calls = 0;
  {
    FaultyFiles files(disk_, {});
    list_checkpoints(files, "/run/c");
    calls = files.calls();
  }
  int unreadable = 0;
  for (int call = 3; call <= calls; ++call) {  // after the two that list the folder
    FaultyFiles files(disk_, {.kind = Fault::Kind::error, .at_call = call, .code = EIO});
    for (const ListedCheckpoint& listed : list_checkpoints(files, "/run/c")) {
      EXPECT_NE(listed.meta, MetaState::damaged) << "call " << call;
      unreadable += listed.meta == MetaState::unreadable;
    }
  }
  EXPECT_EQ(unreadable, 6) << "each meta.json can be opened and read";
}

/// At each call of the listing, the trainer saves one more checkpoint and removes those before the last two.
TEST_F(Listing, WorksDuringASave) {
  int calls = 1;
  for (int call = 1; call <= calls; ++call) {
    SCOPED_TRACE(testing::Message() << "call " << call);
    tests::MemoryDisk disk;
    disk.make_folder("/run");
    for (std::int64_t step : {10, 20, 100})
      EXPECT_THAT(CheckpointDirectory(disk, "/run/c", {}).save(small_checkpoint(step)), IsEmpty());
    FaultyFiles files(disk, {.at_call = call, .meanwhile = [&disk] {
                               CheckpointDirectory trainer(disk, "/run/c", {.keep_last = 2, .keep_best = 0});
                               EXPECT_THAT(trainer.save(small_checkpoint(200)), IsEmpty());
                             }});
    const auto listed = list_checkpoints(files, "/run/c");
    EXPECT_FALSE(listed.empty());
    for (const ListedCheckpoint& checkpoint : listed) EXPECT_EQ(checkpoint.meta, MetaState::valid);
    calls = files.calls();
  }
}

}  // namespace
}  // namespace gradring::train
