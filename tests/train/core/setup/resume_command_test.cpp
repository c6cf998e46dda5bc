// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/resume_command.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/runtime/cpu_level.h"

namespace gradring::train {
namespace {

using Words = std::vector<std::string>;

TEST(ResumeCommand, IsThatOfALoneRankWithItsRunDirectory) {
  EXPECT_EQ(resume_command({.own = {"build/gradring", "train", "--epochs", "3"}}, "runs/a"),
            "build/gradring train --epochs 3 --run-dir runs/a --resume auto");
}

TEST(ResumeCommand, ReplacesRunDirectoryAndResume) {
  const Words own = {"gradring", "train",  "--run-dir", "old",           "--lr",         "0.1",
                     "--resume", "x/step", "--steps=9", "--run_dir=old", "--resume=none"};
  EXPECT_EQ(resume_command({.own = own}, "new"), "gradring train --lr 0.1 --steps=9 --run-dir new --resume auto");
}

TEST(ResumeCommand, TakesOtherValues) {
  const Words own = {"gradring", "train", "--epochs=3", "--lr", "0.1", "--epochs", "4"};
  EXPECT_EQ(resume_command({.own = own}, "a", {{"--epochs", "8"}, {"--steps", "9"}}),
            "gradring train --lr 0.1 --epochs 8 --steps 9 --run-dir a --resume auto");
}

TEST(ResumeCommand, QuotesForAShell) {
  const Words own = {"/a b/gradring", "train", "--data-dir", "it's", "--weights", "", "--inject", "nan:rank=0;x"};
  EXPECT_EQ(resume_command({.own = own}, "my runs/a"),
            R"('/a b/gradring' train --data-dir 'it'\''s' --weights '' --inject 'nan:rank=0;x')"
            " --run-dir 'my runs/a' --resume auto");
  EXPECT_EQ(resume_command({.own = {"gradring", "train"}}, "-a"), "gradring train --run-dir=-a --resume auto");
}

TEST(ResumeCommand, HasTheLauncherOfTheRank) {
  const Words own = {"/bin/gradring", "train", "--steps", "9"};
  const Words launch = {"./gradring", "launch", "--nproc-per-node", "2", "train", "--steps", "9"};
  EXPECT_EQ(resume_command({.own = own, .parent = launch, .launched = true, .world_size = 2}, "r"),
            "./gradring launch --nproc-per-node 2 train --steps 9 --run-dir r --resume auto");
  const Words torchrun = {"python3", "torchrun", "--no-python", "/bin/gradring", "train", "--steps", "9"};
  EXPECT_EQ(resume_command({.own = own, .parent = torchrun, .launched = true, .world_size = 2}, "r"),
            "python3 torchrun --no-python /bin/gradring train --steps 9 --run-dir r --resume auto");
}

TEST(StartCommand, IsThatOfTheLauncherWithItsOptions) {
  const Words own = {"/bin/gradring", "train", "--run-dir", "a b", "--resume", "auto"};
  const Words launch = {"gradring", "launch", "--nproc-per-node", "2", "train", "--run-dir", "a b", "--resume", "auto"};
  EXPECT_EQ(start_command({.own = own, .parent = launch, .launched = true, .world_size = 2}),
            "gradring launch --nproc-per-node 2 train --run-dir 'a b' --resume auto");
  EXPECT_EQ(start_command({.own = own, .environment = {{"GRADRING_LR", "0.1"}, {"HOME", "/root"}}}),
            "GRADRING_LR=0.1 /bin/gradring train --run-dir 'a b' --resume auto");
}

TEST(ResumeCommand, HasTheNumberOfRanksThatWereSpawned) {
  const Words own = {"/bin/gradring", "train", "--nprocs", "2", "--lr", "1", "--nprocs", "1"};
  const Words parent = {"gradring", "train", "--nprocs", "2", "--lr", "1"};
  EXPECT_EQ(resume_command({.own = own, .parent = parent, .launched = true, .world_size = 2}, "r"),
            "gradring train --nprocs 2 --lr 1 --run-dir r --resume auto");
}

TEST(ResumeCommand, IsNotThatOfAParentThatDoesNotLaunch) {
  const Words own = {"gradring", "train", "--lr", "1"};
  EXPECT_EQ(resume_command({.own = own, .parent = {"bash", "run.sh", "train", "--lr", "1"}}, "r"),
            "gradring train --lr 1 --run-dir r --resume auto");
}

TEST(ResumeCommand, SaysWhatElseIsToBeStarted) {
  const Words own = {"gradring", "train"};
  EXPECT_EQ(resume_command({.own = own, .parent = {"slurmstepd"}, .launched = true, .world_size = 4}, "r"),
            "gradring train --run-dir r --resume auto  # as each of the 4 ranks");
  const Words parent = {"gradrun", "--nnodes=3", "train"};
  EXPECT_EQ(resume_command({.own = own, .parent = parent, .launched = true, .world_size = 6, .nodes = 3}, "r"),
            "gradrun --nnodes=3 train --run-dir r --resume auto  # and the launchers on the other 2 nodes");
  const Words of_two = {"gradrun", "--nnodes=2", "train"};
  EXPECT_EQ(resume_command({.own = own, .parent = of_two, .launched = true, .world_size = 2, .nodes = 2}, "r"),
            "gradrun --nnodes=2 train --run-dir r --resume auto  # and the launcher on the other node");
}

TEST(ResumeCommand, HasTheVariableThatChoosesTheCodeOfACpu) {
  const Variables variables = {{std::string(kernels::kCpuLevelVariable), "x86-64-v2"}};
  EXPECT_EQ(resume_command({.own = {"gradring", "train"}, .environment = variables}, "r"),
            std::string(kernels::kCpuLevelVariable) + "=x86-64-v2 gradring train --run-dir r --resume auto");
}

TEST(ResumeCommand, HasTheVariablesThatSetOptions) {
  const Variables variables = {{"GRADRING_LR", "0.1"}, {"GRADRING_TOKEN", "secret"},     {"GRADRING_STORE", "/tmp/x"},
                               {"HOME", "/root"},      {"GRADRING_DATA_DIR", "my data"}, {"PET_NPROC_PER_NODE", "2"}};
  EXPECT_EQ(resume_command({.own = {"gradring", "train"}, .environment = variables}, "r"),
            "GRADRING_LR=0.1 GRADRING_DATA_DIR='my data' gradring train --run-dir r --resume auto");
  const Words parent = {"gradrun", "train"};
  EXPECT_EQ(
      resume_command({.own = {"gradring", "train"}, .parent = parent, .launched = true, .environment = variables}, "r"),
      "GRADRING_LR=0.1 GRADRING_DATA_DIR='my data' PET_NPROC_PER_NODE=2 gradrun train --run-dir r --resume auto");
}

}  // namespace
}  // namespace gradring::train
