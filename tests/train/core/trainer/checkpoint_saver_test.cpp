// SPDX-License-Identifier: Apache-2.0
// Saving on a disk that is slow, or full.
#include "train/core/trainer/training_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "data/datasets/open_dataset.h"
#include "kernels/host/host_device.h"
#include "tests/comm/support/ranks.h"
#include "tests/nn/support/program_rig.h"
#include "tests/train/support/memory_disk.h"
#include "tests/train/support/training_run.h"
#include "train/records/checkpoint/checkpoint_writer.h"
#include "train/records/checkpoint/file_system.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::tests {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using train::CheckpointSaver;
using train::CheckpointWriter;

train::Checkpoint checkpoint_of(std::int64_t step) {
  train::Checkpoint checkpoint;
  checkpoint.step = step;
  return checkpoint;
}

/// A rank's world, of which only the group, the metrics and the checkpoints matter here.
class World {
 public:
  World(comm::ProcessGroup& group, train::CheckpointSink* checkpoints)
      : backend_(make_backend("cpu", device_)),
        world_{.device = device_,
               .kernels = kernels_,
               .backend = *backend_,
               .group = group,
               .train_set = *digits_,
               .test_set = *digits_,
               .metrics = metrics,
               .checkpoints = checkpoints} {}

  CheckpointSaver saver(std::chrono::milliseconds timeout, bool stop_on_errors) const {
    return {world_, timeout, stop_on_errors};
  }

  Recorder metrics;

 private:
  kernels::HostDevice device_;
  const kernels::KernelSet kernels_ = kernels::kernel_set();
  std::unique_ptr<data::Dataset> digits_ = data::open_dataset("digits", data::Split::test, "");
  std::unique_ptr<nn::Backend> backend_;
  train::TrainerWorld world_;
};

TEST(CheckpointSaver, KeepsRanksTogetherThroughASlowSave) {
  constexpr auto kTimeout = 400ms;
  run_as_threads(
      2,
      [&](comm::ProcessGroup& group) {
        MemoryDisk disk;
        CheckpointWriter writer(train::CheckpointDirectory(disk, "/checkpoints"),
                                {.saved = [&](std::int64_t) { std::this_thread::sleep_for(4 * kTimeout); }});
        const World world(group, group.rank() == 0 ? &writer : nullptr);
        CheckpointSaver saver = world.saver(kTimeout, true);
        if (group.rank() == 0) writer.save(checkpoint_of(1));
        saver.finish();
        EXPECT_TRUE(writer.is_idle(0ms));
        group.barrier_on_host();
      },
      kTimeout);
}

TEST(CheckpointWriter, WritesNothingWhereItsFirstHookFails) {
  MemoryDisk disk;
  bool is_saved = false;
  CheckpointWriter writer(
      train::CheckpointDirectory(disk, "/checkpoints"),
      {.before = [] { throw train::EnvironmentError("no fsync"); }, .saved = [&](std::int64_t) { is_saved = true; }});
  writer.save(checkpoint_of(1));
  EXPECT_THROW(writer.finish(), train::EnvironmentError);
  EXPECT_THAT(writer.take_problems(), Contains(HasSubstr("step 1 could not be saved: no fsync")));
  EXPECT_FALSE(is_saved || disk.exists("/checkpoints"));
}

TEST(CheckpointSaver, EndsARunAfterTwoCheckpointsInARowThatCouldNotBeSaved) {
  for (const bool stops : {true, false}) {
    run_as_threads(1, [&](comm::ProcessGroup& group) {
      MemoryDisk disk;
      const train::CheckpointDirectory directory(disk, "/checkpoints");
      CheckpointWriter writer(directory);
      World world(group, &writer);
      CheckpointSaver saver = world.saver(1s, stops);
      const auto save = [&](std::int64_t step, bool fails) {
        if (fails) train::write_new_file(disk, "/checkpoints/step-" + std::to_string(step) + ".partial", "in the way");
        writer.save(checkpoint_of(step));
        saver.wait();
        saver.report();
      };
      save(1, false);
      save(2, true);
      save(3, false);
      save(4, true);
      EXPECT_THAT(world.metrics.remarks,
                  AllOf(Contains(HasSubstr("the checkpoint of step 2 could not be saved: cannot ")),
                        Contains(HasSubstr("the checkpoint of step 4 could not be saved: cannot "))));
      if (stops)
        EXPECT_THROW(save(5, true), train::SaveError);
      else
        EXPECT_NO_THROW(save(5, true));
      EXPECT_THROW(saver.finish(), train::SaveError);
    });
  }
}

TEST(CheckpointWriter, CountsAStepThatIsSavedTwiceOnce) {
  MemoryDisk disk;
  CheckpointWriter writer(train::CheckpointDirectory(disk, "/checkpoints"));
  const auto save = [&](std::int64_t step, bool fails) {
    const std::string partial = "/checkpoints/step-" + std::to_string(step) + ".partial";
    if (fails) train::write_new_file(disk, partial, "in the way");
    writer.save(checkpoint_of(step));
    while (!writer.is_idle(1s)) continue;
    if (fails) disk.remove_file(partial);
    return writer.failures();
  };
  EXPECT_EQ(save(1, false), 0);
  EXPECT_EQ(save(1, true), 0) << "it exists";
  EXPECT_THAT(writer.take_problems(), ElementsAre(HasSubstr("the evaluation in the checkpoint of step 1 could not")));
  EXPECT_EQ(save(2, true), 1);
  EXPECT_EQ(save(2, true), 1);
  EXPECT_EQ(save(3, true), 2);
}

}  // namespace
}  // namespace gradring::tests
