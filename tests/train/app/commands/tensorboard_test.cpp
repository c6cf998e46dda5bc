// SPDX-License-Identifier: Apache-2.0
// Event files of real runs, read by TensorBoard. Skipped where GRADRING_TEST_PYTHON has no tensorboard.
#include <gmock/gmock.h>

#include "tests/support/json.h"
#include "tests/support/test_python.h"
#include "tests/train/app/commands/support/run_directories.h"

namespace gradring::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// A training of 40 steps with evaluations after 15, 30 and 40, and `more` options; checkpoints after 20 and 40.
Words logged_training(const Words& more = {}) {
  return joined({"train", "--run-dir", "run", "--log", "tensorboard", "--epochs", "0", "--steps", "40", "--eval-every",
                 "15", "--save-every-steps", "20", "--keep-last", "0", "--progress", "none", "--resume", "auto"},
                more);
}

class TensorBoard : public RunDirectories {
 protected:
  void train(const Words& words, int code = 0) const {
    const ProgramEnd end = place_.run(words);
    ASSERT_EQ(end.code, code) << end.err;
  }
  /// What check_events.py found; null, and the test is skipped, without tensorboard.
  nlohmann::json read() const {
    const ProgramEnd end = run_program(python_script({GRADRING_CHECK_EVENTS, run().string()}, place_.path("")));
    if (end.code == kPackageMissing) return nullptr;
    EXPECT_EQ(end.code, 0) << end.out << end.err;
    return try_parse_json(end.out);
  }
};

TEST_F(TensorBoard, ReadsScalarsHistogramsAndImages) {
  train(logged_training({"--nprocs", "2", "--clip-norm", "0.5", "--precision", "fp16", "--ema", "0.9"}));
  const nlohmann::json found = read();
  if (found.is_null()) GTEST_SKIP() << "no tensorboard";
  EXPECT_EQ(found["steps"], 40);
  EXPECT_EQ(found["weights"], 8) << "a histogram of each parameter, at the last step";
  EXPECT_EQ(found["gradients"], 3);
  EXPECT_EQ(found["images"]["images/test_samples"], nlohmann::json::parse("[[0, 288, 288]]"));
  EXPECT_EQ(found["images"]["images/conv_layers.0.weight"],
            nlohmann::json::parse("[[15, 226, 226], [30, 226, 226], [40, 226, 226]]"));
  EXPECT_THAT(found["texts"]["run/options"][0].get<std::string>(), HasSubstr("| clip-norm | `0.5` |"));
}

TEST_F(TensorBoard, ReadsShardedWeightsAndGradients) {
  for (const char* stage : {"1", "2", "3"}) {
    std::filesystem::remove_all(run());
    train(logged_training({"--nprocs", "2", "--zero", stage}));
    const nlohmann::json found = read();
    if (found.is_null()) GTEST_SKIP() << "no tensorboard";
    EXPECT_EQ(found["weights"], 8) << stage;
    EXPECT_EQ(found["gradients"], 3) << stage;
  }
}

TEST_F(TensorBoard, LeavesOutGradientsThatWereOverwritten) {
  train(logged_training({"--nprocs", "2", "--zero", "1", "--check-replicas", "1"}));
  const nlohmann::json found = read();
  if (found.is_null()) GTEST_SKIP() << "no tensorboard";
  EXPECT_EQ(found["weights"], 8);
  EXPECT_EQ(found["gradients"], 0);
}

TEST_F(TensorBoard, DiscardsStepsThatAResumeRepeats) {
  train(logged_training({"--inject", "kill:rank=0,step=35"}), 128 + SIGKILL);
  train(logged_training());
  const nlohmann::json found = read();
  if (found.is_null()) GTEST_SKIP() << "no tensorboard";
  EXPECT_EQ(found["files"], 2);
  EXPECT_EQ(found["steps"], 40);
  EXPECT_EQ(found["steps_with_discarded"], 54) << "34 and 20";
}

TEST_F(TensorBoard, DiscardsStepsOfARollback) {
  train(logged_training({"--on-nan", "rollback", "--inject", "nan:rank=0,step=35"}));
  const nlohmann::json found = read();
  if (found.is_null()) GTEST_SKIP() << "no tensorboard";
  EXPECT_EQ(found["files"], 1);
  EXPECT_EQ(found["steps"], 40);
  EXPECT_EQ(found["steps_with_discarded"], 54);
  EXPECT_THAT(found["texts"]["run/events"], ElementsAre("injected fault: nan on rank 0, step 35", "finished"));
}

TEST_F(TensorBoard, NoticesAFlippedBit) {
  train(logged_training());
  const ProgramEnd end = run_program(
      python_script({GRADRING_CHECK_DAMAGE, run().string(), place_.path("damaged").string()}, place_.path("")));
  if (end.code == kPackageMissing) GTEST_SKIP() << end.out;
  EXPECT_EQ(end.code, 0) << end.out << end.err;
}

TEST_F(TensorBoard, IsOffByDefault) {
  train(short_training({"--run-dir", "run"}));
  EXPECT_FALSE(std::filesystem::exists(run() / "tensorboard"));
}

TEST_F(TensorBoard, AnUnknownNameIsRejected) {
  for (const char* log : {"tensorbord", "tensorboard,wandb", "tensorboard,"}) {
    const ProgramEnd end = place_.run(short_training({"--run-dir", "run", "--log", log}));
    EXPECT_EQ(end.code, 2) << log << end.err;
    EXPECT_THAT(end.err, HasSubstr("must be one of tensorboard")) << log;
    EXPECT_FALSE(std::filesystem::exists(run())) << log;
  }
}

/// scripts/to_wandb.py and scripts/to_mlflow.py, without a network.
class Trackers : public TensorBoard {
 protected:
  void SetUp() override {
    train({"train", "--run-dir", "run", "--epochs", "0", "--steps", "40", "--eval-every", "15", "--nprocs", "2",
           "--name", "first", "--tags", "a,b"});
  }
  ProgramEnd python(const Words& words) const { return run_program(python_script(words, place_.path(""))); }
};

TEST_F(Trackers, WandbHoldsWhatTheRunReported) {
  const ProgramEnd end = python({GRADRING_CHECK_WANDB, GRADRING_TO_WANDB, run().string(), place_.path("w").string()});
  if (end.code == kPackageMissing) GTEST_SKIP() << end.out;
  EXPECT_EQ(end.code, 0) << end.out << end.err;
}

TEST_F(Trackers, MlflowHoldsWhatTheRunReported) {
  const ProgramEnd end = python({GRADRING_CHECK_MLFLOW, GRADRING_TO_MLFLOW, run().string(), place_.path("m").string()});
  if (end.code == kPackageMissing) GTEST_SKIP() << end.out;
  EXPECT_EQ(end.code, 0) << end.out << end.err;
}

TEST_F(Trackers, FollowARunOverItsRestarts) {
  const std::string scripts = std::filesystem::path(GRADRING_TO_WANDB).parent_path().string();
  const ProgramEnd end = python({GRADRING_CHECK_FOLLOW, scripts, place_.path("f").string()});
  EXPECT_EQ(end.code, 0) << end.out << end.err;
}

TEST_F(Trackers, SayWhatIsMissing) {
  for (const char* script : {GRADRING_TO_WANDB, GRADRING_TO_MLFLOW}) {
    EXPECT_EQ(python({script, "--help"}).code, 0) << script;
    const ProgramEnd no_run = python({script, "nowhere"});
    EXPECT_EQ(no_run.code, 1);
    EXPECT_THAT(no_run.err, HasSubstr("nowhere is not there: name the run directory"));
    // -S: without installed packages
    const ProgramEnd no_package = python({"-S", script, run().string()});
    EXPECT_EQ(no_package.code, 1);
    EXPECT_THAT(no_package.err, HasSubstr("install it with `pip install"));
    EXPECT_THAT(no_package.err, Not(HasSubstr("Traceback")));
  }
}

}  // namespace
}  // namespace gradring::tests
