// SPDX-License-Identifier: Apache-2.0
#include "train/app/rank/run_banner.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/base/file.h"
#include "tests/support/temp_folder.h"
#include "tests/train/support/text_of.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(const std::vector<BannerRow>& rows, std::size_t columns = 0) {
  return aligned(rows, columns, TextLook(-1));
}

RunHeader header() {
  RunHeader header{.device = "Example CPU, 2 cores", .backend = "cpu", .precision = "fp32", .model = "convnet"};
  header.parameters = 1'199'882;
  header.dataset = "mnist";
  header.train_samples = 54'000;
  header.validation_samples = 6'000;
  header.test_samples = 10'000;
  header.ranks = 2;
  header.global_batch = 128;
  header.steps_per_epoch = 422;
  header.total_steps = 844;
  header.planned_memory[MemoryClass::master] = 3 * 1024 * 1024 + 512 * 1024;
  return header;
}

TEST(RunBanner, SaysWhatIsTrainedAndWhere) {
  EXPECT_EQ(text_of(start_rows(header(), "runs/a", "")),
            "Model          convnet, 1,199,882 parameters\n"
            "Data           mnist: 54,000 training, 6,000 validation, 10,000 test samples\n"
            "Device         Example CPU, 2 cores, by cpu in fp32\n"
            "Ranks          2\n"
            "Steps          844 of 128 samples: 2 epochs of 422 steps\n"
            "Memory         3.50 MiB planned on each rank\n"
            "Run directory  runs/a\n");
}

TEST(RunBanner, NamesTheDevicesOfOneProcess) {
  RunHeader parallel = header();
  parallel.config = {{"data-parallel", "4"}};
  EXPECT_THAT(text_of(start_rows(parallel, "runs/a", "")),
              HasSubstr("Device         Example CPU, 2 cores, by cpu in fp32; 4 devices (--data-parallel)\n"));
  parallel.config = {{"data-parallel", "1"}};
  EXPECT_THAT(text_of(start_rows(parallel, "runs/a", "")), Not(HasSubstr("devices")));
}

TEST(RunBanner, NamesTheCheckpointAndEpochsThatAreNotWhole) {
  RunHeader resumed = header();
  resumed.validation_samples.reset();
  resumed.resumed_from = 1;
  resumed.total_steps = 211;
  const std::string text = text_of(start_rows(resumed, "runs/a", "runs/b/checkpoints/step-1"));
  EXPECT_THAT(text, HasSubstr("mnist: 54,000 training, 10,000 test samples\n"));
  EXPECT_THAT(text, HasSubstr("Steps          211 of 128 samples: 0.5 epochs of 422 steps\n"));
  EXPECT_THAT(text, HasSubstr("Resumed from   runs/b/checkpoints/step-1, after 1 step\n"));
}

TEST(RunBanner, WrapsBetweenWords) {
  const std::string text = text_of(start_rows(header(), "runs/a-name-that-is-longer-than-the-terminal", ""), 40);
  EXPECT_THAT(text, HasSubstr("Data           mnist: 54,000 training,\n"
                              "               6,000 validation, 10,000\n"
                              "               test samples\n"));
  EXPECT_THAT(text, HasSubstr("Run directory  runs/a-name-that-is-longer-than-the-terminal\n")) << "to be copied whole";
}

TEST(RunBanner, EndsWithResultsAndCommands) {
  const tests::TempFolder folder;
  const auto path = folder.path() / "out";
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  Summary summary{.accuracy = 0.98125, .loss = 0.0625};
  summary.validation_accuracy = 0.975;
  summary.validation_loss = 0.07;
  summary.seconds = 12.34;
  summary.world_size = 2;
  summary.samples_per_second = 4321.4;
  summary.parameters_sha256 = "0123456789abcdef0123456789abcdef";
  RunFigures figures{.validation = {.best_accuracy = 0.985, .best_step = 1500}, .is_validated = true};
  figures.best_saved_accuracy = 0.98;
  figures.best_saved_step = 1234;
  TrainConfig config;
  config.val_split = {.fraction = 0.1};
  config.epochs = 3;
  {
    Console out(fd.get());
    print_result(out, {.summary = summary,
                       .config = config,
                       .figures = figures,
                       .started_by = {.own = {"./gradring", "train", "--epochs", "3", "--lr", "0.1"}},
                       .run_dir = "/srv/a/my runs/b",
                       .shown_dir = "my runs/b"});
  }
  EXPECT_EQ(
      tests::text_of(path),
      "\nTest accuracy  98.12 %, loss 0.0625\n"
      "Validation     97.50 %, loss 0.0700\n"
      "Best saved     98.00 % in validation after step 1,234: checkpoints/step-1234\n"
      "Best seen      98.50 % in validation after step 1,500: not saved, since checkpoints are scored at the ends "
      "of epochs\n"
      "Training time  12.3 s, 4321 samples a second on 2 ranks\n"
      "Device memory  0 B a rank at most, 0 B planned\n"
      "Weights        SHA-256 0123456789ab..., equal on all ranks\n"
      "Run directory  /srv/a/my runs/b\n"
      "\n"
      "evaluate       ./gradring eval 'my runs/b' --best\n"
      "train longer   ./gradring train --lr 0.1 --epochs 6 --run-dir 'my runs/b' --resume auto\n"
      "export         ./gradring export 'my runs/b' --output model.onnx\n"
      "report         ./gradring report 'my runs/b' -o report.html\n"
      "compare        ./gradring runs ls\n");
}

/// A resume with more steps would raise the learning rate again, which has come down to its end.
TEST(RunBanner, SuggestsANewRunWhereTheScheduleSpansTheTraining) {
  const StartedBy started_by{.own = {"gradring", "train", "--steps", "9", "--schedule", "cosine", "--run-dir", "r"}};
  TrainConfig config;
  config.epochs = 0;
  config.steps = 9;
  for (const auto schedule : {ScheduleKind::cosine, ScheduleKind::one_cycle}) {
    config.schedule.kind = schedule;
    EXPECT_THAT(
        text_of(next_steps(started_by, config, {}, "r")),
        HasSubstr("train longer   gradring train --schedule cosine --steps 18 --run-dir r-18-steps  # a new run: "
                  "the learning rate of this one has reached its end\n"));
    EXPECT_EQ(longer_advice(config, {}),
              "to train longer, start a new run with more --epochs or --steps: a resume with more would raise the "
              "learning rate, since the " +
                  std::string(word_of(schedule)) + " schedule spans the whole training");
  }
  config.schedule.kind = ScheduleKind::step;
  EXPECT_THAT(text_of(next_steps(started_by, config, {}, "r")), HasSubstr("--steps 18 --run-dir r --resume auto\n"));
  EXPECT_EQ(longer_advice(config, {}), "to train longer, raise --epochs or --steps");
}

TEST(RunBanner, SuggestsALongerTrainingWithoutInjectedFaults) {
  const StartedBy started_by{
      .own = {"gradring", "train", "--inject", "kill:rank=1,step=5", "--epochs", "3", "--inject=nan:rank=0,step=2"}};
  EXPECT_THAT(text_of(next_steps(started_by, {.epochs = 3}, {}, "r")),
              HasSubstr("train longer   gradring train --epochs 6 --run-dir r --resume auto\n"));
}

/// More epochs alone would train nothing; a schedule that spans the training has not come to its end.
TEST(RunBanner, SuggestsToGoOnWithoutAnEarlyStop) {
  const StartedBy started_by{.own = {"gradring", "train", "--epochs", "9", "--early-stop=2", "--schedule", "cosine"}};
  TrainConfig config{.epochs = 9, .early_stop = 2};
  config.schedule.kind = ScheduleKind::cosine;
  const TrainingEnd stopped{.made_all_steps = false, .stops_early = true};
  EXPECT_THAT(
      text_of(next_steps(started_by, config, stopped, "r")),
      HasSubstr("train longer   gradring train --epochs 9 --schedule cosine --early-stop 0 --run-dir r --resume "
                "auto\n"));
  EXPECT_EQ(longer_advice(config, stopped),
            "--early-stop 2 has ended it, since the validation accuracy had not risen for as many epochs; to train "
            "longer, resume with a larger --early-stop, or with 0");
  const TrainingEnd both{.made_all_steps = true, .stops_early = true};
  EXPECT_THAT(text_of(next_steps(started_by, config, both, "r")),
              HasSubstr("gradring train --early-stop=2 --schedule cosine --epochs 18 --run-dir r-18-epochs"));
  config.schedule.kind = ScheduleKind::constant;
  EXPECT_THAT(text_of(next_steps(started_by, config, both, "r")),
              HasSubstr("gradring train --schedule cosine --epochs 18 --early-stop 0 --run-dir r --resume auto\n"));
}

TEST(RunBanner, NamesTheProgramAsThePersonDid) {
  const StartedBy started_by{.own = {"/opt/gradring/bin/gradring", "train", "--steps", "9"},
                             .parent = {"gradring", "launch", "--nproc-per-node", "2", "train", "--steps", "9"},
                             .launched = true,
                             .world_size = 2};
  TrainConfig config;
  config.epochs = 0;
  config.steps = 9;
  const std::string text = text_of(next_steps(started_by, config, {}, "r"));
  EXPECT_THAT(text, HasSubstr("  gradring eval r\n"));
  EXPECT_THAT(text, HasSubstr("  gradring launch --nproc-per-node 2 train --steps 18 --run-dir r --resume auto\n"));
  config.steps = 1'500'000'000;
  EXPECT_THAT(text_of(next_steps(started_by, config, {}, "r")), Not(HasSubstr("train longer")))
      << "--steps takes no more";
  EXPECT_THAT(text, Not(HasSubstr("--best"))) << "nothing was selected but by the test set";
}

}  // namespace
}  // namespace gradring::train
