// SPDX-License-Identifier: Apache-2.0
// gradring eval, by the program that was built.
#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/trained.h"
#include "tests/train/support/sealed_meta.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::ProgramEnd;

class Eval : public tests::Trained {
 protected:
  json summary() const { return tests::parse_json(tests::text_of(place_.path("run/summary.json"))); }
  void lower_score(const char* checkpoint) const {
    const auto meta = place_.path(checkpoint) / "meta.json";
    const std::string text = tests::forged(tests::text_of(meta), [](auto& json) { json["score"] = 0.01; });
    std::ofstream(meta) << text;
  }
};

TEST_F(Eval, SaysWhatTheTrainingSaid) {
  const json result = json_of({"eval", "--checkpoint", "run", "--device", "cpu"});
  EXPECT_EQ(result["samples"], 2000);
  EXPECT_EQ(result["accuracy"], summary()["accuracy"]);
  EXPECT_NEAR(result["loss"].get<double>(), summary()["loss"].get<double>(), 1e-6);
  EXPECT_EQ(result["dataset"], "digits") << "the checkpoint says so";
  const ProgramEnd end = place_.run({"eval", "--checkpoint", "run/checkpoints/best", "--batch-size", "77"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr(result["correct"].dump() + "/2000 ("));
}

TEST_F(Eval, PassesOverADamagedCheckpointAndSaysSo) {
  std::filesystem::resize_file(place_.path("run/checkpoints/step-40/model.safetensors"), 99);
  const ProgramEnd end = place_.run({"eval", "--checkpoint", "run"});
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.err, AllOf(HasSubstr("passed over"), HasSubstr("step-40")));
  EXPECT_THAT(end.out, HasSubstr("run/checkpoints/step-20 (newest of run) on digits's test set"));
  EXPECT_EQ(place_.run({"eval", "--checkpoint", "run/checkpoints/step-40"}).code, 4);
}

TEST_F(Eval, TakesTheRunAsAnArgumentAndItsBestCheckpointIfAsked) {
  const json newest = json_of({"eval", "run", "--device", "cpu"});
  EXPECT_EQ(newest, json_of({"eval", "--checkpoint", "run", "--device", "cpu"}));
  EXPECT_THAT(newest["checkpoint"].get<std::string>(), HasSubstr("step-40"));
  ASSERT_EQ(train("scored", {"--epochs", "2", "--batch-size", "2000"}).code, 0);  // 5 steps an epoch
  lower_score("scored/checkpoints/step-10");
  const ProgramEnd best = place_.run({"eval", "scored", "--best"});
  EXPECT_THAT(best.out, HasSubstr("scored/checkpoints/step-5 (best of scored) on digits's")) << best.err;
  EXPECT_THAT(place_.run({"eval", "scored"}).out,
              HasSubstr("scored/checkpoints/step-10 (newest of scored) on digits's"));
  ASSERT_EQ(place_.run({"export", "scored", "--best", "--output", "best.safetensors"}).code, 0);
  EXPECT_EQ(json_of({"eval", "best.safetensors", "--dataset", "digits"})["loss"],
            json_of({"eval", "scored/checkpoints/step-5"})["loss"]);
  EXPECT_EQ(place_.run({"eval", "scored/checkpoints/step-5", "--best"}).code, 2) << "there is no choice";
  std::filesystem::remove(place_.path("scored/checkpoints/best"));
  EXPECT_THAT(place_.run({"eval", "scored", "--best"}).out, HasSubstr("step-5 (best of scored)"));
  std::filesystem::remove_all(place_.path("run/checkpoints/step-40"));
  const ProgramEnd none = place_.run({"eval", "run", "--best"});
  EXPECT_THAT(none.err, HasSubstr("no checkpoint in run has a score, so the newest is used"));
  EXPECT_THAT(none.out, HasSubstr("step-20 (newest of run)"));
  EXPECT_EQ(place_.run({"eval", "run", "scored"}).code, 2) << "one at a time";
}

/// A program that copies a run and follows links makes folders of `latest` and `best`.
TEST_F(Eval, OfTheBestOfACopyGoesByTheRecordedScores) {
  const tests::Words first = {"--epochs", "100", "--batch-size", "2000", "--steps", "5"};
  ASSERT_EQ(train("copied", first).code, 0);
  const std::string copy = "cp -rL '" + place_.path("copied").string() + "' '" + place_.path("copy").string() + "'";
  ASSERT_EQ(std::system(copy.c_str()), 0);
  EXPECT_THAT(place_.run({"eval", "copy", "--best"}).out, HasSubstr("copy/checkpoints/step-5 (best of copy)"));
  const ProgramEnd resumed = train(
      "copy", {"--epochs", "100", "--batch-size", "2000", "--steps", "10", "--resume", "auto", "--keep-last", "1"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, ::testing::Not(HasSubstr("cannot")));
  const json best = json_of({"eval", "copy", "--best", "--device", "cpu"});
  EXPECT_THAT(best["checkpoint"].get<std::string>(), HasSubstr("step-10"));
  EXPECT_EQ(best["loss"], json_of({"eval", "copy/checkpoints/best", "--device", "cpu"})["loss"]);
  EXPECT_EQ(std::filesystem::read_symlink(place_.path("copy/checkpoints/latest")), "step-10");
  EXPECT_FALSE(std::filesystem::exists(place_.path("copy/checkpoints/step-5"))) << "pruned";
}

TEST_F(Eval, OfARunWhoseNameIsNotUtf8IsStillJson) {
  std::filesystem::rename(place_.path("run"), place_.path("run\xff"));
  const json result = json_of({"eval", "--checkpoint", "run\xff"});
  EXPECT_EQ(result["accuracy"], tests::parse_json(tests::text_of(place_.path("run\xff/summary.json")))["accuracy"]);
  EXPECT_THAT(result["checkpoint"].get<std::string>(), HasSubstr("run\xef\xbf\xbd")) << "U+FFFD";
}

TEST_F(Eval, OfAFolderOfRunsNamesOne) {
  ASSERT_EQ(train("runs/old").code, 0);
  const std::filesystem::path old = place_.path("runs/old");
  std::filesystem::last_write_time(old, std::filesystem::last_write_time(old) - std::chrono::hours(1));
  ASSERT_EQ(train("runs/new").code, 0);
  std::filesystem::create_directory(place_.path("empty"));
  for (const tests::Words& words : {tests::Words{"eval", "runs"},
                                    {"eval", "new"},
                                    {"eval", "runs/", "--best"},
                                    {"ckpt", "ls", "runs"},
                                    {"ckpt", "ls", "new"},
                                    {"runs", "show", "runs"},
                                    {"export", "runs", "--output", "w.pt"}}) {
    const ProgramEnd end = place_.run(words);
    EXPECT_NE(end.code, 0);
    EXPECT_THAT(end.err, HasSubstr("Did you mean runs/new?")) << testing::PrintToString(words);
  }
  EXPECT_THAT(place_.run({"eval", "empty"}).err, Not(HasSubstr("Did you mean")));
}

TEST_F(Eval, OfAFileNeedsADataSet) {
  ASSERT_EQ(place_.run({"export", "--checkpoint", "run", "--output", "w.pt"}).code, 0);
  const ProgramEnd none = place_.run({"eval", "--checkpoint", "w.pt"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("--dataset"));
  const json result = json_of({"eval", "--checkpoint", "w.pt", "--dataset", "digits"});
  EXPECT_EQ(result["accuracy"], summary()["accuracy"]);
  EXPECT_FALSE(result.contains("step"));
  const ProgramEnd mnist = place_.run({"eval", "--checkpoint", "w.pt", "--dataset", "mnist", "--data-dir", "data"});
  EXPECT_THAT(mnist.out, HasSubstr("/32 (")) << mnist.err;
}

TEST_F(Eval, FindsTheDataWhereTheTrainingDid) {
  ASSERT_EQ(place_.run(tests::short_training({"--run-dir", "mnist"})).code, 0);
  for (const tests::Words& more : {tests::Words{}, {"--dataset", "mnist"}}) {
    const ProgramEnd end = place_.run(tests::joined({"eval", "--checkpoint", "mnist"}, more));
    EXPECT_THAT(end.out, HasSubstr("/32 (")) << end.err;
  }
  const ProgramEnd elsewhere = place_.run({"eval", "--checkpoint", "mnist"}, {{"GRADRING_DATA_DIR", "nowhere"}});
  EXPECT_EQ(elsewhere.code, 4) << "the variable wins";
  EXPECT_EQ(place_.run({"eval", "--checkpoint", "mnist"}, {{"GRADRING_BATCH_SIZE", "none"}}).code, 2) << "it is heard";
}

TEST_F(Eval, ComputesInSixteenBitsToo) {
  const json exact = json_of({"eval", "--checkpoint", "run", "--device", "cpu"});
  for (const char* precision : {"fp16", "bf16"}) {
    const json rounded = json_of({"eval", "--checkpoint", "run", "--precision", precision, "--threads", "2"});
    EXPECT_EQ(rounded["precision"], precision);
    EXPECT_NEAR(rounded["loss"].get<double>(), exact["loss"].get<double>(), 0.01);
  }
}

TEST_F(Eval, TakesTheAveragedWeightsOfATrainingThatKeptSome) {
  ASSERT_EQ(train("averaged", {"--ema", "0.9"}).code, 0);
  const json said = tests::parse_json(tests::text_of(place_.path("averaged/summary.json")));
  const json plain = json_of({"eval", "--checkpoint", "averaged", "--device", "cpu"});
  const json averaged = json_of({"eval", "--checkpoint", "averaged", "--device", "cpu", "--ema"});
  EXPECT_EQ(plain["accuracy"], said["accuracy"]);
  EXPECT_EQ(averaged["accuracy"], said["ema_accuracy"]);
  EXPECT_NE(averaged["loss"], plain["loss"]);
  ASSERT_EQ(place_.run({"export", "--checkpoint", "averaged", "--ema", "--output", "e.pt"}).code, 0);
  EXPECT_EQ(json_of({"eval", "--checkpoint", "e.pt", "--dataset", "digits", "--device", "cpu"})["loss"],
            averaged["loss"]);
  const ProgramEnd none = place_.run({"eval", "--checkpoint", "run", "--ema"});
  EXPECT_EQ(none.code, 4);
  EXPECT_THAT(none.err, HasSubstr("has no averaged weights"));
}

TEST_F(Eval, AveragesTheViewsOfTestTimeAugmentationAsTheRunDidAtItsEnd) {
  for (const char* tta : {"flip", "airbench"}) {
    const std::string run = std::string("viewed_") + tta;
    ASSERT_EQ(train(run.c_str(), {"--tta", tta, "--ema", "0.9", "--nprocs", "2"}).code, 0);
    const json said = tests::parse_json(tests::text_of(place_.path(run + "/summary.json")));
    const json plain = json_of({"eval", run, "--device", "cpu"});
    const json viewed = json_of({"eval", run, "--tta", tta, "--device", "cpu"});
    EXPECT_EQ(plain["accuracy"], said["accuracy"]);
    EXPECT_FALSE(plain.contains("tta"));
    EXPECT_EQ(viewed["accuracy"], said["tta_accuracy"]) << tta;
    EXPECT_EQ(viewed["tta"], tta);
    EXPECT_NE(viewed["loss"], plain["loss"]);
    EXPECT_EQ(json_of({"eval", run, "--tta", tta, "--ema", "--device", "cpu"})["accuracy"], said["ema_tta_accuracy"]);
  }
  EXPECT_EQ(place_.run({"eval", "run", "--tta", "rotate"}).code, 2);
  EXPECT_THAT(place_.run({"eval", "run", "--tta", "flip"}).out, HasSubstr("test-time augmentation flip"));
}

TEST_F(Eval, RejectsWhatDoesNotFit) {
  const ProgramEnd other = place_.run({"eval", "--checkpoint", "run/config.resolved.toml", "--dataset", "digits"});
  EXPECT_EQ(other.code, 4) << "no file of tensors";
  EXPECT_EQ(place_.run({"eval"}).code, 2);
  EXPECT_EQ(place_.run({"eval", "--checkpoint", "nowhere"}).code, 4);
  EXPECT_EQ(place_.run({"eval", "--checkpoint", "run", "--dataset", "mnits"}).code, 2);
  EXPECT_EQ(place_.run({"eval", "--checkpoint", "run", "--dataset", "mnist", "--data-dir", "none"}).code, 4);
  EXPECT_EQ(place_.run({"eval", "--checkpoint", "run", "--logits", "none/l.npy"}).code, 2);
  EXPECT_EQ(place_.run({"eval", "--help"}).code, 0);
  ASSERT_EQ(place_.run({"export", "--checkpoint", "run", "--tensor", "fc_layers.2.bias", "--output", "b.npy"}).code, 0);
  const ProgramEnd lacking = place_.run({"eval", "--checkpoint", "b.npy", "--dataset", "digits"});
  EXPECT_EQ(lacking.code, 4);
  EXPECT_THAT(lacking.err, HasSubstr("lacks 'conv_layers.0.weight'"));
}

}  // namespace
}  // namespace gradring
