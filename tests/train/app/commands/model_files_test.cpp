// SPDX-License-Identifier: Apache-2.0
// Models from files, by the program that was built: training, resuming, what reads a run, and what is rejected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/every_option.h"
#include "tests/train/support/text_of.h"
#include "train/core/config/options.h"

namespace gradring {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using tests::ProgramEnd;
using tests::short_training;
using tests::Words;
using tests::Workplace;

constexpr const char* kSmall = R"(
layers = [
  { conv2d = "conv1", out = "width", kernel = 3, stride = 2 },
  { block = "layer1", of = "basic", repeat = 2 },
  { max_pool2d = "pool", kernel = 2 },
  { flatten = "flatten" },
  { linear = "fc", out = "classes" },
]

[parameters]
width = 4

[blocks.basic]
layers = [
  { conv2d = "conv1", out = "in", kernel = 3, padding = 1 },
  { relu = "relu1" },
  { conv2d = "conv2", out = "in", kernel = 3, padding = 1 },
  { add = "add", inputs = ["conv2", "input"] },
  { relu = "relu2" },
]
)";

class ModelFiles : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(place_.path(name), std::ios::binary) << text;
  }
  ProgramEnd train(const Words& more) const {
    return place_.run(short_training(tests::joined({"--model", "small.toml"}, more)));
  }
  std::string hash_of(const std::string& run) const {
    return tests::parse_json(tests::text_of(place_.path(run) / "summary.json"))
        .at("parameters_sha256")
        .get<std::string>();
  }

  std::vector<double> losses_of(const std::string& run) const {
    std::vector<double> losses;
    std::istringstream lines(tests::text_of(place_.path(run) / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);)
      if (const json record = tests::parse_json(line); record.at("event") == "train")
        losses.push_back(record.at("loss").get<double>());
    return losses;
  }

  Workplace place_;
};

TEST_F(ModelFiles, TwoRanksTrainAndResumeWithoutTheFile) {
  write("small.toml", kSmall);
  const ProgramEnd begun = train({"--nprocs", "2", "--save-every-steps", "2"});
  ASSERT_EQ(begun.code, 0) << begun.err;
  EXPECT_EQ(tests::text_of(place_.path("run/model.toml")), kSmall);
  ASSERT_EQ(train({"--nprocs", "2", "--steps", "4", "--run-dir", "whole"}).code, 0);

  std::filesystem::remove(place_.path("small.toml"));
  const ProgramEnd resumed = train({"--nprocs", "2", "--steps", "4", "--resume", "auto"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(hash_of("run"), hash_of("whole"));

  const Words data = {"--data-dir", "data"};
  EXPECT_EQ(place_.run(tests::joined({"eval", "run"}, data)).code, 0);
  EXPECT_EQ(place_.run({"ckpt", "verify", "run"}).code, 0);
  EXPECT_EQ(place_.run({"export", "run", "--output", "small.onnx", "--card", "card.md"}).code, 0);
  EXPECT_THAT(tests::text_of(place_.path("card.md")), HasSubstr("layer1.1.conv2"));
  EXPECT_EQ(place_.run({"report", "run"}).code, 0);
  EXPECT_EQ(place_.run({"model", "show", "run/model.toml"}).code, 0);
  const ProgramEnd repeated =
      place_.run({"train", "--config", "run/config.resolved.toml", "--nprocs", "2", "--run-dir", "repeated"});
  ASSERT_EQ(repeated.code, 0) << repeated.err;
}

TEST_F(ModelFiles, DataParallelRejectsBatchNormWhereItIsPlanned) {
  std::string text = kSmall;
  text.replace(text.find("  { relu = \"relu1\" }"), 0, "  { batch_norm2d = \"bn1\" },\n");
  write("small.toml", text);
  for (const char* command : {"plan", "train"}) {
    SCOPED_TRACE(command);
    const ProgramEnd end = place_.run({command, "--model", "small.toml", "--data-parallel", "2"});
    EXPECT_EQ(end.code, 2);
    EXPECT_THAT(end.err, HasSubstr("--data-parallel does not split batch normalization"));
  }
}

TEST_F(ModelFiles, BatchNormResumesToTheSameBits) {
  std::string text = kSmall;
  text.replace(text.find("  { relu = \"relu1\" }"), 0, "  { batch_norm2d = \"bn1\" },\n");
  write("small.toml", text);
  for (const Words& more : {Words{}, Words{"--sync-batchnorm", "--zero", "3"}}) {
    const std::string run = "run" + std::to_string(more.size());
    const Words ranks = tests::joined({"--nprocs", "2", "--check-replicas", "1"}, more);
    ASSERT_EQ(train(tests::joined(ranks, {"--save-every-steps", "2", "--run-dir", run})).code, 0);
    ASSERT_EQ(train(tests::joined(ranks, {"--steps", "4", "--run-dir", run, "--resume", "auto"})).code, 0);
    ASSERT_EQ(train(tests::joined(ranks, {"--steps", "4", "--run-dir", run + "whole"})).code, 0);
    EXPECT_EQ(hash_of(run), hash_of(run + "whole"));
    EXPECT_EQ(place_.run({"eval", run, "--data-dir", "data"}).code, 0);
  }
  const ProgramEnd end = train({"--reproducible", "--run-dir", "other"});
  EXPECT_EQ(end.code, 2) << end.err;
  EXPECT_THAT(end.err, HasSubstr("--reproducible with batch normalization requires --sync-batchnorm"));
}

/// Also in the last step of an epoch, in which of 12 samples 4 are left: of four ranks two have none.
TEST_F(ModelFiles, SyncBatchNormOfProcessesHasTheLossesOfOneRank) {
  std::string text = kSmall;
  text.replace(text.find("  { relu = \"relu1\" }"), 0, "  { batch_norm2d = \"bn1\" },\n");
  write("small.toml", text);
  const auto losses = [&](int ranks, const std::string& transport) {
    const std::string run = transport + std::to_string(ranks);
    const ProgramEnd end =
        train({"--nprocs", std::to_string(ranks), "--comm", transport, "--sync-batchnorm", "--sampler", "sharded",
               "--global-batch", "12", "--shard-size", std::to_string(12 / ranks), "--optimizer", "sgd", "--lr", "0.01",
               "--steps", "11", "--run-dir", run});
    EXPECT_EQ(end.code, 0) << end.err;
    return losses_of(run);
  };
  const std::vector<double> one = losses(1, "shm");
  ASSERT_EQ(one.size(), 11u);
  for (const char* transport : {"shm", "tcp"})
    for (const int ranks : {2, 4}) {
      const std::vector<double> other = losses(ranks, transport);
      ASSERT_EQ(other.size(), one.size());
      for (std::size_t i = 0; i < one.size(); ++i)
        EXPECT_NEAR(other[i], one[i], 1e-6 * one[i]) << ranks << " ranks over " << transport << ", step " << i;
    }
}

TEST_F(ModelFiles, ReproducibleBatchNormHasOneHashOnAnyTransport) {
  std::string text = kSmall;
  text.replace(text.find("  { relu = \"relu1\" }"), 0, "  { batch_norm2d = \"bn1\" },\n");
  write("small.toml", text);
  const Words exact = {"--reproducible",     "--sync-batchnorm",
                       "--global-batch",     "24",
                       "--accumulate",       "2",
                       "--shard-size",       "3",
                       "--save-every-steps", "1"};
  const auto hash = [&](const std::string& run, const Words& more) {
    const ProgramEnd end = train(tests::joined(tests::joined(exact, {"--steps", "4", "--run-dir", run}), more));
    EXPECT_EQ(end.code, 0) << end.err;
    return hash_of(run);
  };
  const std::string one = hash("one", {});
  EXPECT_EQ(hash("two", {"--nprocs", "2", "--comm", "tcp"}), one);
  EXPECT_EQ(hash("three", {"--nprocs", "3", "--comm", "shm", "--zero", "3"}), one);
  EXPECT_EQ(hash("four", {"--nprocs", "4", "--checkpoint-activations", "2"}), one);
  EXPECT_EQ(hash("resumed", {"--nprocs", "3", "--resume", "two/checkpoints/step-2"}), one);
  const ProgramEnd end = train(tests::joined(
      exact, {"--steps", "5", "--run-dir", "other", "--accumulate", "1", "--resume", "two/checkpoints/step-2"}));
  EXPECT_EQ(end.code, 2) << end.err;
  EXPECT_THAT(end.err, HasSubstr("with --accumulate 2; this run has --accumulate 1, which gives other bits"));
}

/// What a reproducible run saved of its options is a valid training without --reproducible, too.
TEST_F(ModelFiles, TheConfigOfAReproducibleRunTrainsWithoutIt) {
  std::string text = kSmall;
  text.replace(text.find("  { relu = \"relu1\" }"), 0, "  { batch_norm2d = \"bn1\" },\n");
  write("small.toml", text);
  ASSERT_EQ(train({"--reproducible", "--sync-batchnorm", "--global-batch", "12", "--accumulate", "2", "--shard-size",
                   "3", "--save-every-steps", "1", "--run-dir", "exact"})
                .code,
            0);
  const Words config = {"train", "--config", "exact/config.resolved.toml", "--no-reproducible"};
  for (const Words& more :
       {Words{"--run-dir", "new"}, Words{"--run-dir", "resumed", "--resume", "exact/checkpoints/step-1"},
        Words{"--run-dir", "exact", "--resume", "auto", "--steps", "3"}}) {
    const ProgramEnd end = place_.run(tests::joined(config, more));
    ASSERT_EQ(end.code, 0) << end.err;
    const std::vector<double> exact = losses_of("exact"), floats = losses_of(more[1]);
    EXPECT_NEAR(floats.back(), exact.back(), 1e-4);
  }
}

TEST_F(ModelFiles, DropoutResumesToTheSameBitsAfterAKill) {
  std::string text = kSmall;
  text.replace(text.find("  { linear"), 0, "  { dropout = \"drop\" },\n");
  write("small.toml", text);
  for (const Words& more : {Words{}, Words{"--zero", "3", "--accumulate", "2", "--checkpoint-activations", "2"}}) {
    const std::string run = "run" + std::to_string(more.size());
    const Words ranks = tests::joined({"--nprocs", "2", "--steps", "4"}, more);
    const ProgramEnd killed =
        train(tests::joined(ranks, {"--save-every-steps", "1", "--run-dir", run, "--inject", "kill:rank=1,step=4"}));
    ASSERT_EQ(killed.code, 137) << killed.err;
    ASSERT_EQ(train(tests::joined(ranks, {"--run-dir", run, "--resume", "auto"})).code, 0);
    ASSERT_EQ(train(tests::joined(ranks, {"--run-dir", run + "whole"})).code, 0);
    EXPECT_EQ(hash_of(run), hash_of(run + "whole"));
    EXPECT_EQ(place_.run({"eval", run, "--data-dir", "data"}).code, 0);
  }
}

/// By the same command, by the saved settings, and by a launcher that repeats the command.
TEST_F(ModelFiles, FrozenGroupsResumeToTheSameBits) {
  write("small.toml", kSmall);
  const Words frozen = {"--group", "conv1.*:frozen", "--save-every-steps", "1"};
  ASSERT_EQ(train(tests::joined(frozen, {"--steps", "4", "--run-dir", "whole"})).code, 0);
  for (const char* run : {"same", "config"}) ASSERT_EQ(train(tests::joined(frozen, {"--run-dir", run})).code, 0);
  const ProgramEnd same = train(tests::joined(frozen, {"--steps", "4", "--run-dir", "same", "--resume", "auto"}));
  EXPECT_EQ(same.code, 0) << same.err;
  const ProgramEnd config = place_.run(
      {"train", "--config", "config/config.resolved.toml", "--steps", "4", "--run-dir", "config", "--resume", "auto"});
  EXPECT_EQ(config.code, 0) << config.err;
  const Words again = tests::joined(frozen, {"--steps", "4", "--run-dir", "again", "--resume", "auto", "--inject",
                                             "kill:rank=0,step=3", "--model", "small.toml"});
  const ProgramEnd restarted =
      place_.run(tests::joined({"launch", "--nproc-per-node", "1", "--max-restarts", "1"}, short_training(again)));
  EXPECT_EQ(restarted.code, 0) << restarted.err;
  for (const char* run : {"same", "config", "again"}) EXPECT_EQ(hash_of(run), hash_of("whole")) << run;
  const ProgramEnd thawed = train({"--steps", "6", "--run-dir", "same", "--resume", "auto"});
  EXPECT_EQ(thawed.code, 4) << thawed.err;
  EXPECT_THAT(thawed.err, HasSubstr("saved by a training with --group 'conv1.*:frozen=true', this run is without"));
}

/// Whatever must fit a checkpoint, or changes what is trained, fits where it is repeated.
TEST_F(ModelFiles, ResumeWithEveryOptionThatChangesModelOrData) {
  write("small.toml", kSmall);
  std::vector<tests::OneOption> options;
  for (const tests::OneOption& option : tests::every_option()) {
    const train::TrainOption& found = *train::find_option(option.name);
    const bool binds = found.on_resume == train::OnResume::must_fit ||
                       found.on_resume == train::OnResume::must_fit_within_epoch ||
                       found.changes == train::Changes::training;
    const bool needs_files = found.on_resume == train::OnResume::checkpoint || option.name == "dataset" ||
                             std::ranges::any_of(option.with, [](const auto& each) { return each.second == "/data"; });
    if (binds && !needs_files && option.name != "model" && option.name != "model-text") options.push_back(option);
  }
  ASSERT_GT(options.size(), 15u);
  for (const tests::OneOption& option : options) {
    Words words = {"--save-every-steps", "1", "--run-dir", "of-" + option.name,
                   "--" + option.name + "=" + option.value};
    for (const auto& [name, value] : option.with) words.push_back("--" + name + "=" + value);
    if (option.value == "true") words[4] = "--" + option.name;
    EXPECT_EQ(train(tests::joined(words, {"--steps", "2"})).code, 0) << option.name;
    const ProgramEnd end = train(tests::joined(words, {"--steps", "3", "--resume", "auto"}));
    EXPECT_EQ(end.code, 0) << option.name << ": " << end.err;
  }
}

TEST_F(ModelFiles, AResumeRejectsAnotherModel) {
  write("small.toml", kSmall);
  ASSERT_EQ(train({"--save-every-steps", "2"}).code, 0);
  std::string changed = kSmall;
  write("small.toml", "# A remark changes nothing.\n" + changed);
  EXPECT_EQ(train({"--steps", "3", "--resume", "auto"}).code, 0);
  changed.replace(changed.find("{ relu = \"relu2\" },"), 19, "");
  write("small.toml", changed);
  const ProgramEnd end = train({"--steps", "4", "--resume", "auto"});
  EXPECT_EQ(end.code, 4) << "CheckpointError";
  EXPECT_THAT(end.err, AllOf(HasSubstr("was saved by a training of another model"),
                             HasSubstr("layer 6 was layer1.0.relu2: ReLU() of layer1.0.add"), HasSubstr("small.toml")));
}

TEST_F(ModelFiles, BadOnesEndWithTheirLineAndLeaveNothing) {
  const auto model = [](const std::string& layers) {
    return "layers = [\n" + layers + "\n{ flatten = 'f' },\n{ linear = 'fc', out = 'classes' },\n]";
  };
  const std::pair<std::string, std::string> cases[] = {
      {model("{ conv2d = 'a', out = 4, kernel = 30 },"),
       "small.toml:2: a reads input: conv2d has input [n, 28, 28, 1], expected an image of at least 30 x 30 for "
       "windows of 30 x 30"},
      {model("{ conv2d = 'a', out = 4, kernel = 3 },\n{ add = 'b', inputs = ['a', 'input'] },"),
       "small.toml:3: b reads [n, 26, 26, 4] (a) and [n, 28, 28, 1] (input), expected equal shapes"},
      {"", "small.toml is empty"},
      {std::string("\x7f\x45\x4c\x46\0\1\2\xff", 8), "small.toml:1: invalid TOML"},
      {std::string(300'000, '#'), "small.toml is larger than"},
  };
  for (const auto& [text, message] : cases) {
    write("small.toml", text);
    const ProgramEnd end = place_.run({"train", "--model", "small.toml", "--nprocs", "2"});
    EXPECT_EQ(end.code, 2) << message;
    EXPECT_THAT(end.err, HasSubstr(message));
    EXPECT_EQ(tests::reasons_in(end.err), 1) << end.err;
    EXPECT_THAT(place_.left(), ElementsAre("small.toml")) << message;
  }
  std::filesystem::remove(place_.path("small.toml"));
  for (const char* name : {"small.toml", "data/", "./data"}) {
    const ProgramEnd end = place_.run({"train", "--model", name});
    EXPECT_EQ(end.code, 2) << name;
    EXPECT_THAT(end.err, HasSubstr(std::string("model file ") + name)) << name;
  }
  for (const Words& words : {Words{"train", "--model", "convent"}, Words{"model", "show", "convent"}}) {
    const ProgramEnd typo = place_.run(words);
    EXPECT_EQ(typo.code, 2);
    EXPECT_THAT(typo.err, HasSubstr("Did you mean 'convnet'?"));
    EXPECT_EQ(typo.err.find("--model") == std::string::npos, words.front() == "model") << typo.err;
  }
  EXPECT_THAT(place_.left(), IsEmpty());
}

TEST_F(ModelFiles, ShowListsLayersAndTotals) {
  write("small.toml", kSmall);
  const ProgramEnd text = place_.run({"model", "show", "small.toml"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(StartsWith("small: images of 28 x 28 x 1, 10 classes\n"), HasSubstr("layer1.1.add"),
                              HasSubstr("activations")));
  const ProgramEnd end = place_.run({"model", "show", "small.toml", "--input", "32x30x3", "--classes", "7", "--json"});
  ASSERT_EQ(end.code, 0) << end.err;
  const json shown = tests::parse_json(end.out);
  EXPECT_EQ(shown.at("layers").size(), 14u);
  const json& first = shown.at("layers").at(0);
  EXPECT_EQ(first.at("output"), json({15, 14, 4}));
  EXPECT_EQ(first.at("parameters"), 3 * 3 * 3 * 4 + 4);
  EXPECT_EQ(first.at("multiply_adds"), 15 * 14 * 4 * 27);
  EXPECT_EQ(shown.at("layers").at(4).at("inputs"), json({"layer1.0.conv2", "conv1"}));
  EXPECT_EQ(shown.at("parameters"), 112 + 4 * (9 * 4 * 4 + 4) + 7 * 7 * 4 * 7 + 7);
  EXPECT_GT(shown.at("memory_bytes").at("activations").get<std::int64_t>(), 0);
}

TEST_F(ModelFiles, ShowCountsFrozenParameters) {
  const auto show = [&](const std::string& frozen) {
    write("small.toml", "layers = [{ conv2d = 'conv', out = 4, kernel = 3" + frozen +
                            " }, { flatten = 'flatten' }, { linear = 'fc', out = 'classes' }]");
    const ProgramEnd end = place_.run({"model", "show", "small.toml", "-J"});
    EXPECT_EQ(end.code, 0) << end.err;
    return tests::parse_json(end.out);
  };
  const json all = show(""), some = show(", frozen = ['weight', 'bias']");
  constexpr int kConv = 9 * 4 + 4, kFc = 26 * 26 * 4 * 10 + 10;
  EXPECT_EQ(all.at("trainable"), kConv + kFc);
  EXPECT_EQ(all.at("frozen"), 0);
  EXPECT_EQ(some.at("parameters"), kConv + kFc);
  EXPECT_EQ(some.at("trainable"), kFc);
  EXPECT_EQ(some.at("frozen"), kConv);
  EXPECT_EQ(some.at("layers").at(0).at("frozen"), kConv);
  EXPECT_EQ(some.at("memory_bytes").at("weights"), 4 * (kConv + kFc));
  EXPECT_EQ(some.at("memory_bytes").at("gradients"), 4 * kFc);
  EXPECT_EQ(some.at("memory_bytes").at("optimizer"), 8 * kFc);
  const std::string text = place_.run({"model", "show", "small.toml"}).out;
  EXPECT_THAT(text, AllOf(::testing::ContainsRegex("trainable +" + std::to_string(kFc)),
                          ::testing::ContainsRegex("frozen +" + std::to_string(kConv))));
}

/// torchvision.models.ResNet18_Weights states 1.814 GFLOPS.
TEST_F(ModelFiles, ShowCountsMultiplyAddsAsTorchvision) {
  const ProgramEnd end = place_.run({"model", "show", "resnet18", "--input", "224x224x3", "--classes", "1000", "-J"});
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(tests::parse_json(end.out).at("multiply_adds"), 1'814'073'344);
}

TEST_F(ModelFiles, ShowReportsModelsBeyondAnyMemory) {
  write("large.toml",
        "layers = [{ flatten = 'f' },\n{ linear = 'fc1', out = 1000000000 },\n"
        "{ linear = 'fc2', out = 'classes' }]");
  const ProgramEnd end = place_.run({"model", "show", "large.toml"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("795000000010"));
  EXPECT_NE(place_.run({"train", "--model", "large.toml"}).code, 0);
  EXPECT_THAT(place_.left(), ElementsAre("large.toml"));
}

TEST_F(ModelFiles, ShowKnowsTheBuiltInOnes) {
  for (const auto& [name, parameters] :
       {std::pair{"convnet", 431'242}, std::pair{"convnet-deep", 1'098'074}, std::pair{"lenet5", 44'426}}) {
    const ProgramEnd end = place_.run({"model", "show", name, "-J"});
    ASSERT_EQ(end.code, 0) << end.err;
    EXPECT_EQ(tests::parse_json(end.out).at("parameters"), parameters) << name;
  }
}

}  // namespace
}  // namespace gradring
