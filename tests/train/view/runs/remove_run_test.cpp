// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/run_files.h"

#include <gmock/gmock.h>

#include "tests/data/support/message_of.h"
#include "tests/train/support/text_of.h"
#include "tests/train/view/runs/written_run.h"
#include "train/core/setup/run_lock.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tests::message_of;

class RemoveRun : public ::testing::Test {
 protected:
  RemoveRun() {
    run_ = runs_.write("run", {tests::start_at(10), tests::step_at(11, 1)});
    for (const char* file :
         {"logs/rank_0.log", "logs/rank_11.log", "summary.json", "config.resolved-2.toml",
          "checkpoints/step-1/meta.json", "checkpoints/step-1/model.safetensors",
          "checkpoints/step-2.partial/state.safetensors", "tensorboard/events.out.tfevents.1.host.2"})
      put(file);
    fs::create_directory_symlink("step-1", run_ / "checkpoints/latest");
    put("../precious/data");
  }
  void put(const fs::path& file) const {
    fs::create_directories((run_ / file).parent_path());
    std::ofstream(run_ / file) << "text";
  }
  tests::WrittenRuns runs_;
  fs::path run_;
  fs::path precious_ = runs_.path("precious/data");
};

TEST_F(RemoveRun, LeavesNothingOfAWholeRun) {
  const RunRemoval removal = plan_removal(run_);
  EXPECT_THAT(removal.kept, IsEmpty());
  EXPECT_GT(removal.bytes, 0u);
  remove(removal);
  EXPECT_FALSE(fs::exists(run_));
  EXPECT_TRUE(fs::exists(precious_));
}

TEST_F(RemoveRun, KeepsWhatGradringDidNotWrite) {
  for (const char* file : {"notes.txt", "logs/rank_0.log.gz", "checkpoints/step-1/notes",
                           "checkpoints/step-007/meta.json", "logs/rank_00.log"})
    put(file);
  remove(plan_removal(run_));
  EXPECT_TRUE(fs::exists(run_ / "notes.txt"));
  EXPECT_TRUE(fs::exists(run_ / "logs/rank_0.log.gz"));
  EXPECT_TRUE(fs::exists(run_ / "logs/rank_00.log"));
  EXPECT_TRUE(fs::exists(run_ / "checkpoints/step-1/notes"));
  EXPECT_TRUE(fs::exists(run_ / "checkpoints/step-007/meta.json"));
  EXPECT_FALSE(fs::exists(metrics_of(run_)));
  EXPECT_FALSE(fs::exists(run_ / "checkpoints/step-1/meta.json"));
}

TEST_F(RemoveRun, FollowsNoLink) {
  fs::remove_all(run_ / "checkpoints");
  fs::create_directory(runs_.path("disk"));
  std::ofstream(runs_.path("disk/step-1")) << "text";
  fs::create_directory_symlink(runs_.path("disk"), run_ / "checkpoints");
  fs::remove(run_ / "summary.json");
  fs::create_symlink(precious_, run_ / "summary.json");
  const RunRemoval removal = plan_removal(run_);
  EXPECT_THAT(removal.kept, ElementsAre(run_ / "checkpoints", run_ / "summary.json"));
  remove(removal);
  EXPECT_TRUE(fs::exists(runs_.path("disk/step-1")));
  EXPECT_TRUE(fs::exists(precious_));
  EXPECT_TRUE(fs::is_symlink(run_ / "checkpoints"));
}

/// While a person is asked, for example.
TEST_F(RemoveRun, LeavesAnotherRunThatHasThePathMeanwhile) {
  const RunRemoval removal = plan_removal(run_);
  fs::rename(run_, runs_.path("old"));
  runs_.write("run", {tests::start_at(10)});
  EXPECT_THAT(message_of<UsageError>([&] { remove(removal); }), HasSubstr("was moved or replaced meanwhile"));
  EXPECT_TRUE(fs::exists(metrics_of(run_)));
  EXPECT_TRUE(fs::exists(metrics_of(runs_.path("old"))));
}

TEST_F(RemoveRun, AcceptsWhatAnInterruptedRemovalLeaves) {
  for (const char* rest : {"", ".lock", "logs/"}) {
    const fs::path run = runs_.path("rest");
    fs::create_directories(run / rest);
    if (std::string(rest) == ".lock") {
      fs::remove(run / rest);
      std::ofstream(run / rest) << R"({"pid": 4194305, "host": "here"})";
    }
    remove(plan_removal(run));
    EXPECT_FALSE(fs::exists(run)) << rest;
  }
}

/// In a copy of a run, links may be folders.
TEST_F(RemoveRun, RemovesCopiedLinks) {
  fs::remove(run_ / "checkpoints/latest");
  put("checkpoints/latest/meta.json");
  put("checkpoints/best/model.safetensors");
  remove(plan_removal(run_));
  EXPECT_FALSE(fs::exists(run_));
}

TEST_F(RemoveRun, RejectsALinkAndAnyOtherFolder) {
  fs::create_directory_symlink(run_, runs_.path("link"));
  for (const fs::path& path : {runs_.path("link"), runs_.path("link/")})
    EXPECT_THAT(message_of<UsageError>([&] { plan_removal(path); }), HasSubstr("symbolic link"));
  EXPECT_THAT(message_of<UsageError>([&] { plan_removal(runs_.path("precious")); }), HasSubstr("not a run directory"));
}

TEST_F(RemoveRun, RejectsARunningRunAndOneThatStartsMeanwhile) {
  const RunRemoval removal = plan_removal(run_);
  const RunLock lock(run_, {});
  EXPECT_THAT(message_of<UsageError>([&] { plan_removal(run_); }), HasSubstr("is running"));
  EXPECT_THAT(message_of<UsageError>([&] { remove(removal); }), HasSubstr("in use"));
  EXPECT_TRUE(fs::exists(metrics_of(run_)));
}

}  // namespace
}  // namespace gradring::train
