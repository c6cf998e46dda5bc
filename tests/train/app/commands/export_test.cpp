// SPDX-License-Identifier: Apache-2.0
// gradring export: what it says of the weights, the model card, and checkpoints that are damaged or forged.
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/trained.h"
#include "tests/train/support/sealed_meta.h"
#include "tests/train/support/text_of.h"
#include "train/options/shell_words.h"

namespace gradring {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using tests::ProgramEnd;

class Export : public tests::Trained {
 protected:
  ProgramEnd exported(const tests::Words& more) const {
    return place_.run(tests::joined({"export", "--checkpoint", "run"}, more));
  }

  /// Overwrites meta.json of the newest checkpoint, with a correct checksum.
  void forge(const std::function<void(nlohmann::ordered_json&)>& change) {
    const std::string meta = "run/checkpoints/step-40/meta.json";
    const std::string text = tests::forged(tests::text_of(place_.path(meta)), change);
    place_.folder().write(meta, tests::Bytes(text.begin(), text.end()));
  }

  /// Replaces a text in its settings.
  void forge_settings(const std::string& before, const std::string& after) {
    forge([&](nlohmann::ordered_json& meta) {
      auto settings = meta["about"]["settings"].get<std::string>();
      const auto at = settings.find(before);
      ASSERT_NE(at, settings.npos) << settings;
      meta["about"]["settings"] = settings.replace(at, before.size(), after);
    });
  }

  void expect_refused(const tests::Words& words, const char* message) const {
    const ProgramEnd end = place_.run(words);
    EXPECT_EQ(end.code, 4) << end.err;
    EXPECT_THAT(end.err, HasSubstr(message));
    for (const std::string& left : place_.left()) EXPECT_THAT(left, Not(HasSubstr("out.")));
  }
};

TEST_F(Export, SafetensorsCarryPreprocessingAndLabels) {
  ASSERT_EQ(exported({"--output", "w.safetensors"}).code, 0);
  const std::string text = tests::text_of(place_.path("w.safetensors"));
  const json header = tests::parse_json(text.substr(8, text.find("}}") + 2 - 8));
  const json& about = header.at("__metadata__");
  EXPECT_EQ(about["format"], "pt");
  EXPECT_EQ(about["model"], "convnet");
  EXPECT_EQ(about["dataset"], "digits");
  EXPECT_EQ(about["step"], "40");
  EXPECT_EQ(about["input_layout"], "NCHW");
  EXPECT_EQ(about["preprocessing"], "(pixels / 255 - mean) / std");
  EXPECT_FALSE(about.contains("resize")) << "these samples are not made of image files";
  EXPECT_EQ(tests::parse_json(about["input_shape"].get<std::string>()), json({1, 28, 28}));
  EXPECT_EQ(tests::parse_json(about["std"].get<std::string>()), json({0.5}));
  EXPECT_EQ(tests::parse_json(about["labels"].get<std::string>()).size(), 10u);
}

TEST_F(Export, KeepsFileWithNameOfTemporary) {
  place_.folder().write("w.pt.partial", tests::Bytes{'m', 'i', 'n', 'e'});
  EXPECT_EQ(exported({"--output", "w.pt"}).code, 0);
  EXPECT_EQ(tests::text_of(place_.path("w.pt.partial")), "mine");
  EXPECT_TRUE(std::filesystem::exists(place_.path("w.pt")));
}

TEST_F(Export, ACardSaysWhatTheModelIsAndHowItWasMeasured) {
  ASSERT_EQ(exported({"--output", "model.onnx", "--card", "model.md"}).code, 0);
  const std::string card = tests::text_of(place_.path("model.md"));
  EXPECT_THAT(card, AllOf(HasSubstr("# convnet trained on digits"), HasSubstr("431242 parameters"),
                          HasSubstr("mean 0.5, std 0.5"), HasSubstr("| test |"), HasSubstr("2000 test samples"),
                          HasSubstr("train --dataset digits --steps 40"), HasSubstr("License: not stated")));
  const std::string onnx = tests::text_of(place_.path("model.onnx"));
  EXPECT_THAT(card, HasSubstr(train::sha256_hex(train::bytes_of(onnx))));
  EXPECT_EQ(exported({"--output", "other.onnx", "--card", "model.md"}).code, 2) << "the card already exists";
}

TEST_F(Export, ACardHasTheCommandThatWasGiven) {
  const tests::Words training = {"train", "--dataset", "digits", "--steps", "2", "--name", "two words"};
  const tests::Words spawned = tests::joined(training, {"--nprocs", "2", "--run-dir", "spawned"});
  const tests::Words launched = tests::launched(tests::joined(training, {"--run-dir", "launched"}));
  for (const auto& [run, words] : {std::pair("spawned", spawned), std::pair("launched", launched)}) {
    ASSERT_EQ(place_.run(words).code, 0);
    ASSERT_EQ(
        place_.run({"export", run, "--output", std::string(run) + ".pt", "--card", std::string(run) + ".md"}).code, 0);
    const std::string card = tests::text_of(place_.path(std::string(run) + ".md"));
    EXPECT_THAT(card,
                AllOf(HasSubstr("gradring " + train::shell_command(words) + "`\n"), Not(HasSubstr("--nprocs 1"))));
  }
}

TEST_F(Export, AFileOfWeightsNeedsModelAndDataset) {
  ASSERT_EQ(exported({"--output", "w.pt"}).code, 0);
  ASSERT_EQ(exported({"--output", "a.onnx"}).code, 0);
  const ProgramEnd unnamed = place_.run({"export", "--checkpoint", "w.pt", "--output", "b.onnx"});
  EXPECT_EQ(unnamed.code, 2);
  EXPECT_THAT(unnamed.err, HasSubstr("--model and --dataset"));
  const tests::Words named = {"export", "--checkpoint", "w.pt", "--model", "convnet", "--dataset", "digits"};
  ASSERT_EQ(place_.run(tests::Words{named}).code, 2) << "--output is missing";
  ASSERT_EQ(
      place_.run({"export", "--checkpoint", "w.pt", "--model", "convnet", "--dataset", "digits", "--output", "b.onnx"})
          .code,
      0);
  EXPECT_EQ(place_.run({"export", "--checkpoint", "w.pt", "--optimizer", "--output", "o.pt"}).code, 2);
  EXPECT_EQ(exported({"--optimizer", "--output", "o.safetensors"}).code, 2);
  expect_refused(
      {"export", "--checkpoint", "w.pt", "--model", "convnet-deep", "--dataset", "digits", "--output", "out.onnx"},
      "belongs to another model");
}

TEST_F(Export, DamagedAndForgedCheckpointsAreRejected) {
  const tests::Words onnx = {"export", "--checkpoint", "run/checkpoints/step-40", "--output", "out.onnx"};
  const tests::Words optimizer = {"export",      "--checkpoint", "run/checkpoints/step-40",
                                  "--optimizer", "--output",     "out.pt"};
  forge_settings("model = \"convnet\"", "model = \"resnet\"");
  expect_refused(onnx, "does not name a model");
  forge_settings("model = \"resnet\"", "model = \"convnet-deep\"");
  expect_refused(onnx, "lacks");
  forge_settings("model = \"convnet-deep\"", "model = \"convnet\"");
  forge_settings("optimizer = \"adam\"", "optimizer = \"sgd\"");
  expect_refused(optimizer, "which the model lacks");
  forge_settings("optimizer = \"sgd\"", "optimizer = \"lion\"");
  expect_refused(optimizer, "invalid settings");
  forge_settings("optimizer = \"lion\"", "optimizer = \"adam\"");
  forge([](nlohmann::ordered_json& meta) { meta["about"]["step_state"]["applied_steps"] = -7; });
  expect_refused(optimizer, "applied_steps");
  forge([](nlohmann::ordered_json& meta) {
    meta["about"]["step_state"]["applied_steps"] = 40;
    meta["about"]["samples_of_step"] = 0;
  });
  expect_refused(optimizer, "samples_of_step");
  forge([](nlohmann::ordered_json& meta) {
    for (const char* name : {"samples_of_step", "order", "total_steps"}) meta["about"].erase(name);
  });
  EXPECT_EQ(exported({"--optimizer", "--output", "o.pt"}).code, 0) << "the schedule is constant";
  forge([](nlohmann::ordered_json& meta) { meta["about"]["sample_shape"] = {1, 2, 3}; });
  expect_refused(onnx, "samples of");
  std::filesystem::resize_file(place_.path("run/checkpoints/step-40/model.safetensors"), 1000);
  expect_refused(onnx, "model.safetensors");
}

TEST_F(Export, RejectsOptimizersThatAreNotOneOfPyTorch) {
  for (const auto& [optimizer, message] :
       {std::pair(tests::Words{"--optimizer", "sgd", "--group", "*.bias:optimizer=adam"},
                  "has parameter groups of sgd and adam, which PyTorch keeps in two optimizers"),
        std::pair(tests::Words{"--optimizer", "muon"},
                  "has parameters of muon, and torch.optim.Muon takes only those of two dimensions")}) {
    const std::string run = "by-" + optimizer[1];
    ASSERT_EQ(
        place_.run(tests::joined({"train", "--dataset", "digits", "--steps", "1", "--run-dir", run}, optimizer)).code,
        0);
    expect_refused({"export", run, "--optimizer", "--output", "out.pt"}, message);
  }
}

TEST_F(Export, ACardNamesTheSplitOfEachEvaluation) {
  ASSERT_EQ(
      place_.run({"train", "--dataset", "digits", "--steps", "4", "--val-split", "0.1", "--run-dir", "split"}).code, 0);
  ASSERT_EQ(place_.run({"export", "split", "--output", "split.pt", "--card", "split.md"}).code, 0);
  EXPECT_THAT(tests::text_of(place_.path("split.md")), AllOf(HasSubstr("| validation |"), HasSubstr("| test |")));
}

TEST_F(Export, RejectsOneFileForModelAndCard) {
  EXPECT_EQ(exported({"--output", "same.onnx", "--card", "same.onnx"}).code, 2);
  EXPECT_FALSE(std::filesystem::exists(place_.path("same.onnx")));
}

TEST_F(Export, ACardIgnoresLinesOfMetricsThatAreNoEvents) {
  const std::string before = tests::text_of(place_.path("run/metrics.jsonl"));
  const std::string text = "{\"event\":\"eval\",\"step\":{}}\n" + before + "{\"event\":\"tra";
  place_.folder().write("run/metrics.jsonl", tests::Bytes(text.begin(), text.end()));
  ASSERT_EQ(exported({"--output", "w.pt", "--card", "model.md"}).code, 0);
  EXPECT_THAT(tests::text_of(place_.path("model.md")), HasSubstr("| test |"));
}

}  // namespace
}  // namespace gradring
