// SPDX-License-Identifier: Apache-2.0
// What a person names, read while its run goes on.
#include "train/core/setup/start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "tests/train/records/checkpoint/small_checkpoint.h"
#include "tests/train/records/checkpoint/tensors.h"
#include "tests/train/support/faulty_files.h"
#include "train/records/checkpoint/checkpoint_directory.h"

namespace gradring::train {
namespace {

using testing::AnyOf;
using testing::IsEmpty;
using tests::FaultyFiles;

/// A run that keeps its last checkpoint only, and has saved one.
class NamedCheckpoint : public testing::Test {
 protected:
  NamedCheckpoint() {
    files_.make_folder(run_);
    save();
  }

  void save() {
    CheckpointDirectory trainer(files_, run_ / "checkpoints", {.keep_last = 1, .keep_best = 0});
    EXPECT_THAT(trainer.save(small_checkpoint(++step_)), IsEmpty());
  }

  /// Reads what `path` names again and again; the run saves once each time, a call later than the time before.
  void expect_read_beside_the_run(const std::filesystem::path& path) {
    int calls = 1;
    for (int call = 1; call <= calls; ++call) {
      SCOPED_TRACE(testing::Message() << path << ", call " << call);
      FaultyFiles files(files_, {.at_call = call, .meanwhile = [this] { save(); }});
      std::vector<std::string> remarks;
      const ResumePoint point = named_checkpoint(files, path, "--checkpoint", remarks);
      EXPECT_THAT(point.checkpoint.step, AnyOf(step_ - 1, step_));
      expect_equal(point.checkpoint, small_checkpoint(point.checkpoint.step));
      EXPECT_EQ(point.from, run_ / "checkpoints" / step_folder_name(point.checkpoint.step));
      EXPECT_THAT(remarks, IsEmpty());
      calls = std::max(calls, files.calls());
    }
    EXPECT_GT(calls, 10);
  }

  tests::TempFolder folder_;
  const std::filesystem::path run_ = folder_.path() / "run";
  PosixFileSystem files_;
  std::int64_t step_ = 0;
};

TEST_F(NamedCheckpoint, OfARunIsItsNewestWhileTheRunSavesAndPrunes) { expect_read_beside_the_run(run_); }

TEST_F(NamedCheckpoint, BehindALinkIsOneWhileTheRunChangesTheLink) {
  expect_read_beside_the_run(run_ / "checkpoints" / "latest");
  expect_read_beside_the_run(run_ / "checkpoints" / "latest/");
}

TEST_F(NamedCheckpoint, ThatWasRemovedSaysSo) {
  FaultyFiles files(files_, {.at_call = 4, .meanwhile = [this] { save(); }});
  std::vector<std::string> remarks;
  EXPECT_THAT(refusal([&] { named_checkpoint(files, run_ / "checkpoints" / "step-1", "--checkpoint", remarks); }),
              testing::HasSubstr("step-1 was removed while it was read"));
}

TEST(TakeAveraged, KeepsTheBuffersOfTheModel) {
  const auto one = [](const char* name, float value) {
    return tensor(name, TensorType::f32, {1}, std::vector<float>{value});
  };
  NamedTensors named;
  named.contents.model = {one("bn.weight", 1), one("bn.running_mean", 2)};
  named.contents.state = {one("momentum.bn.weight", 3), one("ema.bn.weight", 4)};
  take_averaged(named);
  ASSERT_EQ(named.contents.model.size(), 2u);
  EXPECT_EQ(named.contents.model[0].name, "bn.weight");
  EXPECT_EQ(named.contents.model[0].bytes, one("", 4).bytes);
  EXPECT_EQ(named.contents.model[1].name, "bn.running_mean");
  EXPECT_EQ(named.contents.model[1].bytes, one("", 2).bytes);
}

}  // namespace
}  // namespace gradring::train
