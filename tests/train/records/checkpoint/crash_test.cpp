// SPDX-License-Identifier: Apache-2.0
// Stops a save at each of its system calls, or makes that call fail in every way. The disk must then hold the
// checkpoint that was being saved, or the one before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tests/train/records/checkpoint/small_checkpoint.h"
#include "tests/train/support/faulty_files.h"
#include "tests/train/support/memory_disk.h"
#include "train/records/checkpoint/checkpoint_directory.h"

namespace gradring::train {
namespace {

using testing::IsEmpty;
using tests::Fault;
using tests::FaultyFiles;
using tests::MemoryDisk;

constexpr Retention kRetention = {.keep_last = 2, .keep_best = 1};
constexpr const char* kRoot = "/run/checkpoints";

struct Story {
  std::string name;
  std::vector<std::int64_t> before;  ///< saved without a fault
  std::int64_t step;                 ///< saved with one
};

const Story kStories[] = {{"the first", {}, 1},
                          {"the second", {1}, 2},
                          {"the fourth, which prunes", {1, 2, 3}, 4},
                          {"one that is there", {1, 2}, 2}};

/// Step 1 has the highest score, so pruning must keep it.
Checkpoint checkpoint_of(std::int64_t step) { return small_checkpoint(step, 1.0 / static_cast<double>(step)); }

std::unique_ptr<MemoryDisk> disk_before(const Story& story) {
  auto disk = std::make_unique<MemoryDisk>();
  disk->make_folder("/run");
  disk->sync_folder("/");
  for (std::int64_t step : story.before)
    EXPECT_THAT(CheckpointDirectory(*disk, kRoot, kRetention).save(checkpoint_of(step)), IsEmpty());
  return disk;
}

/// The number of calls of a save without a fault.
int calls_of(const Story& story) {
  const auto disk = disk_before(story);
  FaultyFiles files(*disk, {});
  EXPECT_THAT(CheckpointDirectory(files, kRoot, kRetention).save(checkpoint_of(story.step)), IsEmpty());
  return files.calls();
}

enum class Outcome { saved, failed, cut };

Outcome save_with(MemoryDisk& disk, const Story& story, Fault fault) {
  FaultyFiles files(disk, std::move(fault));
  try {
    (void)CheckpointDirectory(files, kRoot, kRetention).save(checkpoint_of(story.step));
    return Outcome::saved;
  } catch (const FileError&) {
    return Outcome::failed;
  } catch (const tests::PowerCut&) {
    return Outcome::cut;
  }
}

/// Expects a complete checkpoint: the new one if the save succeeded, else the new one or the one before.
void expect_newest_or_the_one_before(MemoryDisk& disk, const Story& story, Outcome outcome) {
  const NewestValid newest = CheckpointDirectory(disk, kRoot, kRetention).newest_valid();
  if (!newest.found) {
    EXPECT_TRUE(story.before.empty() && outcome != Outcome::saved) << "nothing can be loaded";
    return;
  }
  const std::int64_t step = newest.found->step;
  if (outcome == Outcome::saved || story.before.empty())
    EXPECT_EQ(step, story.step);
  else
    EXPECT_TRUE(step == story.step || step == story.before.back()) << "loads step " << step;
  expect_equal(read_checkpoint(disk, newest.found->folder), checkpoint_of(step));
}

/// Expects that the next save works and removes what the fault left behind.
void expect_the_next_save_works(MemoryDisk& disk) {
  CheckpointDirectory directory(disk, kRoot, kRetention);
  EXPECT_THAT(directory.save(checkpoint_of(9)), IsEmpty());
  EXPECT_EQ(directory.newest_valid().found->step, 9);
  EXPECT_EQ(disk.read_link("/run/checkpoints/latest"), "step-9");
  for (const std::string& name : disk.list(kRoot)) EXPECT_EQ(name.find('.'), name.npos) << name;
}

void expect_survives(const Story& story, Fault::Kind kind, int code = 0) {
  const int calls = calls_of(story);
  ASSERT_GT(calls, 15);
  for (int call = 1; call <= calls; ++call) {
    SCOPED_TRACE(testing::Message() << story.name << ", call " << call << " of " << calls);
    const auto disk = disk_before(story);
    const Outcome outcome = save_with(*disk, story, {.kind = kind, .at_call = call, .code = code});
    expect_newest_or_the_one_before(*disk, story, outcome);
    expect_the_next_save_works(*disk);
  }
}

TEST(Crash, KillAtAnyCall) {
  for (const Story& story : kStories) expect_survives(story, Fault::Kind::power_cut);
}

TEST(Crash, ResumeSetsLinksAfterKill) {
  for (const Story& story : kStories) {
    const int calls = calls_of(story);
    for (int call = 1; call <= calls; ++call) {
      SCOPED_TRACE(testing::Message() << story.name << ", call " << call << " of " << calls);
      const auto disk = disk_before(story);
      save_with(*disk, story, {.kind = Fault::Kind::power_cut, .at_call = call});
      CheckpointDirectory directory(*disk, kRoot, kRetention);
      const auto newest = directory.newest_valid().found;
      EXPECT_THAT(directory.abandon_after(newest ? newest->step : -1), IsEmpty());
      EXPECT_EQ(disk->exists("/run/checkpoints/latest"), newest.has_value());
      if (!newest) continue;
      EXPECT_EQ(disk->read_link("/run/checkpoints/latest"), step_folder_name(newest->step));
      EXPECT_EQ(disk->read_link("/run/checkpoints/best"), "step-1");
    }
  }
}

TEST(Crash, ErrorAtAnyCall) {
  for (const Story& story : kStories)
    for (int code : {EIO, ENOSPC, EROFS, EACCES}) expect_survives(story, Fault::Kind::error, code);
}

TEST(Crash, DiskFullFromAnyCall) {
  for (const Story& story : kStories) expect_survives(story, Fault::Kind::disk_full);
}

TEST(Crash, ShortWriteAtAnyCall) {
  for (const Story& story : kStories) {
    const int calls = calls_of(story);
    for (int call = 1; call <= calls; ++call) {
      const auto disk = disk_before(story);
      EXPECT_EQ(save_with(*disk, story, {.kind = Fault::Kind::short_write, .at_call = call}), Outcome::saved);
      expect_newest_or_the_one_before(*disk, story, Outcome::saved);
    }
  }
}

TEST(Crash, PowerLossAtAnyCall) {
  constexpr unsigned kSeed = 40;
  std::mt19937 random(kSeed);
  for (const Story& story : kStories) {
    const int calls = calls_of(story);
    for (int call = 1; call <= calls; ++call)
      for (int way = 0; way < 5; ++way) {
        SCOPED_TRACE(testing::Message() << story.name << ", call " << call << ", way " << way << ", seed " << kSeed);
        const auto disk = disk_before(story);
        const Outcome outcome = save_with(*disk, story, {.kind = Fault::Kind::power_cut, .at_call = call});
        disk->lose_power(random);
        expect_newest_or_the_one_before(*disk, story, outcome);
        expect_the_next_save_works(*disk);
      }
  }
}

TEST(Crash, SavedCheckpointSurvivesPowerLoss) {
  constexpr unsigned kSeed = 41;
  std::mt19937 random(kSeed);
  for (const Story& story : kStories)
    for (int way = 0; way < 50; ++way) {
      const auto disk = disk_before(story);
      EXPECT_EQ(save_with(*disk, story, {}), Outcome::saved);
      disk->lose_power(random);
      expect_newest_or_the_one_before(*disk, story, Outcome::saved);
      EXPECT_EQ(disk->read_link("/run/checkpoints/latest"), "step-" + std::to_string(story.step));
    }
}

TEST(Crash, CheckpointSavedDespiteErrorSurvivesPowerLoss) {
  constexpr unsigned kSeed = 42;
  std::mt19937 random(kSeed);
  int saved = 0;
  for (const Story& story : kStories) {
    const int calls = calls_of(story);
    for (int call = 1; call <= calls; ++call)
      for (int way = 0; way < 5; ++way) {
        const auto disk = disk_before(story);
        // A file system without links returns EPERM.
        const Fault fault{.kind = Fault::Kind::error, .at_call = call, .code = EPERM};
        if (save_with(*disk, story, fault) != Outcome::saved) continue;
        ++saved;
        disk->lose_power(random);
        expect_newest_or_the_one_before(*disk, story, Outcome::saved);
      }
  }
  EXPECT_GT(saved, 20);
}

TEST(Crash, CheckpointWithoutLinksSurvivesPowerLoss) {
  constexpr unsigned kSeed = 43;
  std::mt19937 random(kSeed);
  for (const Story& story : kStories)
    for (int way = 0; way < 20; ++way) {
      const auto disk = disk_before(story);
      FaultyFiles files(*disk, {.kind = Fault::Kind::no_links});
      const auto problems = CheckpointDirectory(files, kRoot, kRetention).save(checkpoint_of(story.step));
      EXPECT_EQ(problems.size(), 2u) << "latest and best";
      disk->lose_power(random);
      expect_newest_or_the_one_before(*disk, story, Outcome::saved);
    }
}

TEST(Crash, FailedSaveFreesItsSpace) {
  const Story story{"the second", {1}, 2};
  const auto disk = disk_before(story);
  EXPECT_EQ(save_with(*disk, story, {.kind = Fault::Kind::disk_full, .at_call = 12}), Outcome::failed);
  EXPECT_THAT(disk->list(kRoot), testing::UnorderedElementsAre("step-1", "latest", "best"));
}

}  // namespace
}  // namespace gradring::train
