// SPDX-License-Identifier: Apache-2.0
// A copy of a run whose links became folders (cp -rL, object stores).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/records/checkpoint/small_checkpoint.h"
#include "tests/train/support/memory_disk.h"
#include "train/records/checkpoint/checkpoint_directory.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// Steps 10 (the best), 20 and 30 (the newest), with folders `latest` and `best`.
class CopiedLinks : public testing::Test {
 protected:
  CopiedLinks() {
    disk_.make_folder("/run");
    for (const auto& [step, score] : {std::pair(10, 0.9), {20, 0.5}, {30, 0.6}})
      EXPECT_THAT(keeping(0).save(small_checkpoint(step, score)), IsEmpty());
    for (const char* link : {"latest", "best"}) {
      const fs::path target = disk_.read_link(root_ / link);
      disk_.remove_file(root_ / link);
      copy(target, link);
    }
  }

  CheckpointDirectory keeping(int last) { return {disk_, root_, {.keep_last = last, .keep_best = 1}}; }
  void copy(const fs::path& from, const fs::path& to) {
    disk_.make_folder(root_ / to);
    for (const std::string& name : disk_.list(root_ / from)) {
      const auto& bytes = disk_.bytes_of(root_ / from / name);
      write_new_file(disk_, root_ / to / name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
  }
  void remove(const fs::path& folder) {
    for (const std::string& name : disk_.list(root_ / folder)) disk_.remove_file(root_ / folder / name);
    disk_.remove_folder(root_ / folder);
  }

  fs::path root_ = "/run/c";
  tests::MemoryDisk disk_;
};

TEST_F(CopiedLinks, CountByTheStepAndScoreOfTheirMetaJson) {
  const CheckpointDirectory directory = keeping(0);
  std::vector<fs::path> folders;
  for (const CheckpointEntry& entry : directory.entries()) folders.push_back(entry.folder);
  EXPECT_THAT(folders, ElementsAre(root_ / "step-30", root_ / "step-20", root_ / "step-10"));
  EXPECT_EQ(directory.best_first().front().step, 10);
  const std::vector<ListedCheckpoint> all = list_checkpoints(disk_, root_);
  EXPECT_TRUE(all.front().is_latest);
  EXPECT_TRUE(all.back().is_best);
}

TEST_F(CopiedLinks, BecomeLinksAgainWithTheNextSave) {
  EXPECT_THAT(keeping(1).save(small_checkpoint(40, 0.95)), IsEmpty());
  EXPECT_EQ(disk_.read_link(root_ / "latest"), "step-40");
  EXPECT_EQ(disk_.read_link(root_ / "best"), "step-40");
  EXPECT_THAT(disk_.list(root_), UnorderedElementsAre("step-40", "latest", "best"));
}

TEST_F(CopiedLinks, BecomeLinksAgainWithAResume) {
  EXPECT_THAT(keeping(0).abandon_after(20), IsEmpty());
  EXPECT_EQ(disk_.read_link(root_ / "latest"), "step-20");
  EXPECT_EQ(disk_.read_link(root_ / "best"), "step-10");
  EXPECT_THAT(disk_.list(root_), UnorderedElementsAre("step-10", "step-20", "abandoned-step-30", "latest", "best"));
}

TEST_F(CopiedLinks, AreUsedWhereTheyHoldTheOnlyCheckpointOfAStep) {
  remove("step-10");
  remove("step-30");
  EXPECT_EQ(keeping(0).newest_valid().found->folder, root_ / "latest");
  EXPECT_EQ(keeping(0).best_first().front().folder, root_ / "best");
  EXPECT_THAT(keeping(0).save(small_checkpoint(40, 0.1)), IsEmpty());
  EXPECT_THAT(disk_.list(root_), UnorderedElementsAre("step-10", "step-20", "step-30", "step-40", "latest", "best"));
  EXPECT_EQ(disk_.read_link(root_ / "best"), "step-10");
  expect_equal(read_checkpoint(disk_, root_ / "step-10"), small_checkpoint(10, 0.9));
}

TEST_F(CopiedLinks, OfAnAbandonedStepAreNotUsed) {
  disk_.rename(root_ / "step-30", root_ / "abandoned-step-30");
  EXPECT_EQ(keeping(0).newest_valid().found->step, 20);
  EXPECT_THAT(keeping(0).save(small_checkpoint(21, 0.1)), IsEmpty());
  EXPECT_THAT(disk_.list(root_),
              UnorderedElementsAre("step-10", "step-20", "step-21", "abandoned-step-30", "latest", "best"));
}

TEST_F(CopiedLinks, AreKeptIfTheCheckpointBesideThemIsDamaged) {
  disk_.bytes_of(root_ / "step-10" / "model.safetensors").back() ^= std::byte{1};
  EXPECT_THAT(keeping(0).save(small_checkpoint(40, 0.1)), IsEmpty());
  expect_equal(read_checkpoint(disk_, root_ / "abandoned-step-10"), small_checkpoint(10, 0.9));
}

TEST_F(CopiedLinks, ThatAreNoCheckpointsAreReportedAndKept) {
  for (const char* file : {"meta.json", "model.safetensors", "state.safetensors"})
    disk_.remove_file(root_ / "latest" / file);
  write_new_file(disk_, root_ / "latest" / "notes", "mine");
  EXPECT_THAT(keeping(0).save(small_checkpoint(40, 0.1)), ElementsAre(HasSubstr("latest")));
  EXPECT_EQ(disk_.list(root_ / "latest"), std::vector<std::string>{"notes"});
  EXPECT_EQ(disk_.read_link(root_ / "best"), "step-10");
}

}  // namespace
}  // namespace gradring::train
