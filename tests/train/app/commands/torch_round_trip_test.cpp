// SPDX-License-Identifier: Apache-2.0
// Weights go from a run to PyTorch and from PyTorch into a run. Skipped where no python3 imports torch.
#include <gmock/gmock.h>

#include <algorithm>

#include "data/datasets/digits.h"
#include "tests/data/support/written_idx.h"
#include "tests/support/json.h"
#include "tests/train/app/commands/support/trained.h"
#include "train/core/doctor/find_python.h"

namespace gradring {
namespace {

using nlohmann::json;
using tests::joined;
using tests::ProgramEnd;
using tests::Words;

constexpr std::uint32_t kImages = 1000;

class TorchRoundTrip : public tests::Trained {
 protected:
  void SetUp() override {
    const train::PythonSearch search = train::search_python_with_torch();
    if (!search.python) GTEST_SKIP() << search.to_string();
    python_ = *search.python;
    Trained::SetUp();
    write_test_images();
  }

  /// A thousand digits that the network has not seen, as MNIST's test set.
  void write_test_images() const {
    const auto digits = data::make_digits(data::Split::test);
    tests::Bytes pixels, labels;
    for (std::int64_t i = 0; i < kImages; ++i) {
      pixels.insert(pixels.end(), digits->pixels(i).begin(), digits->pixels(i).end());
      labels.push_back(static_cast<std::uint8_t>(digits->label(i)));
    }
    place_.folder().write(std::string("data/") + tests::kTestImages, tests::idx_bytes({kImages, 28, 28}, pixels));
    place_.folder().write(std::string("data/") + tests::kTestLabels, tests::idx_bytes({kImages}, labels));
  }

  std::string torch(const Words& words) const {
    Words command = {python_, GRADRING_TORCH_PEER};
    command.insert(command.end(), words.begin(), words.end());
    const ProgramEnd end =
        tests::run_program({.command = command, .folder = place_.path(""), .variables = {{"OMP_NUM_THREADS", "1"}}});
    EXPECT_EQ(end.code, 0) << end.err;
    return end.out;
  }

  void run(const Words& words) const {
    const ProgramEnd end = place_.run(words);
    EXPECT_EQ(end.code, 0) << end.err;
  }

  /// That PyTorch gets from `weights` what we get from `checkpoint`.
  void expect_the_same_logits(const std::string& checkpoint, const std::string& weights) const {
    const std::string logits = std::to_string(++files_) + ".npy";
    run({"eval", "--checkpoint", checkpoint, "--dataset", "mnist", "--data-dir", "data", "--device", "cpu", "--logits",
         logits});
    const json found =
        tests::parse_json(torch({"compare", weights, std::string("data/") + tests::kTestImages, logits}));
    EXPECT_EQ(found["images"], kImages);
    EXPECT_LT(found["difference"], 1e-5) << weights;
  }

  std::string python_;
  mutable int files_ = 0;
};

TEST_F(TorchRoundTrip, AnExportedRunGivesTheSameLogits) {
  run({"export", "--checkpoint", "run", "--output", "w.pt"});
  run({"export", "--checkpoint", "run", "--output", "w.safetensors"});
  expect_the_same_logits("run", "w.pt");
  expect_the_same_logits("run", "w.safetensors");
  expect_the_same_logits("run/checkpoints/step-20", "run/checkpoints/step-20/model.safetensors");
}

TEST_F(TorchRoundTrip, EverySpellingIsJudgedAlike) {
  torch({"state_dicts", "."});
  for (const char* spelling : {"convnet", "sequential", "attributes", "parallel", "compiled"})
    expect_the_same_logits(std::string(spelling) + ".pt", "convnet.pt");
}

TEST_F(TorchRoundTrip, AStateDictTrainsOnHereAndGoesBack) {
  torch({"state_dicts", "."});
  for (const char* spelling : {"convnet", "attributes"}) {
    const std::string run_dir = std::string("from-") + spelling;
    ASSERT_EQ(train(run_dir, {"--weights", std::string(spelling) + ".pt"}).code, 0);
    run({"export", "--checkpoint", run_dir, "--output", run_dir + ".pt"});
    expect_the_same_logits(run_dir, run_dir + ".pt");
    EXPECT_EQ(place_.run({"ckpt", "diff", run_dir, "convnet.pt"}).code, 1) << "it has learned something";
  }
  EXPECT_EQ(place_.run({"ckpt", "diff", "from-convnet", "from-attributes.pt"}).code, 0);
}

/// An optimizer by PyTorch's name, and the options that select it here.
struct OptimizerCase {
  std::string name;
  Words options;
  std::string frozen = {};  ///< beginning of the names of frozen parameters
};

class TorchOptimizers : public TorchRoundTrip, public testing::WithParamInterface<OptimizerCase> {
 protected:
  /// A step takes all 64 images, so their order does not matter.
  void train_on_all(const std::string& run_dir, const std::string& steps, const Words& more) const {
    const Words words = {"train", "--dataset",   "mnist", "--data-dir",         "data", "--batch-size",
                         "64",    "--steps",     steps,   "--save-every-steps", "1",    "--keep-last",
                         "0",     "--precision", "fp32",  "--progress",         "none", "--device",
                         "cpu",   "--run-dir",   run_dir};
    run(joined(joined(words, GetParam().options), more));
  }

  double distance(const std::string& a, const std::string& b) const {
    return tests::parse_json(torch({"distance", a, b})).get<double>();
  }
};

constexpr double kStepBound = 1e-6;  // of weights around 0.1: some units in the last place

TEST_P(TorchOptimizers, GoOnThereAndHereAlike) {
  const bool scheduled = std::ranges::find(GetParam().options, "--schedule") != GetParam().options.end();
  train_on_all("ours", "5", {});
  run({"export", "--checkpoint", "ours/checkpoints/step-4", "--output", "w.pt"});
  run({"export", "--checkpoint", "ours/checkpoints/step-4", "--optimizer", "--output", "o.pt"});
  const Words frozen = GetParam().frozen.empty() ? Words() : Words{GetParam().frozen};
  torch(joined({"optimizer_steps", GetParam().name, "w.pt", "o.pt", "data", "theirs", "2"}, frozen));
  EXPECT_LT(distance("ours/checkpoints/step-5/model.safetensors", "theirs-1.pt"), kStepBound);
  EXPECT_GT(distance("w.pt", "theirs-1.pt"), 10 * kStepBound) << "a step changes the weights";
  if (scheduled) return;
  train_on_all("back", "1", {"--weights", "theirs-1.pt", "--optimizer-state", "theirs-1-optimizer.pt"});
  EXPECT_LT(distance("back/checkpoints/step-1/model.safetensors", "theirs-2.pt"), kStepBound);
  train_on_all("new", "1", {"--weights", "theirs-1.pt"});
  EXPECT_GT(distance("new/checkpoints/step-1/model.safetensors", "theirs-2.pt"), 10 * kStepBound)
      << "a new optimizer takes another step";
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, TorchOptimizers,
    testing::Values(OptimizerCase{"Adam", {"--optimizer", "adam"}},
                    OptimizerCase{"AdamW", {"--optimizer", "adamw", "--weight-decay", "0.1", "--no-bias-decay"}},
                    OptimizerCase{"SGD",
                                  {"--optimizer", "sgd", "--momentum", "0.9", "--nesterov", "--weight-decay", "0.01",
                                   "--lr", "0.05", "--schedule", "cosine"}},
                    OptimizerCase{"SGD", {"--optimizer", "sgd", "--momentum", "0.9", "--lr", "0.05"}},
                    OptimizerCase{"SGD", {"--group", "*:optimizer=sgd,momentum=0.9,lr=0.05"}},
                    OptimizerCase{"Adam", {"--group", "conv_layers.*:frozen"}, "conv_layers."},
                    OptimizerCase{"AdamW",
                                  {"--optimizer", "adamw", "--weight-decay", "0.1", "--no-bias-decay", "--group",
                                   "fc_layers.0.*:frozen"},
                                  "fc_layers.0."}),
    [](const auto& test) { return test.param.name + std::to_string(test.index); });

TEST_F(TorchRoundTrip, APtCarriesItsPreprocessingBesideAPlainStateDict) {
  run({"export", "--checkpoint", "run", "--output", "w.pt"});
  const json about = tests::parse_json(torch({"about", "w.pt"}));
  EXPECT_EQ(about["model"], "convnet");
  EXPECT_EQ(about["input_shape"], json({1, 28, 28}));
  EXPECT_EQ(about["mean"], json({0.5}));
  EXPECT_EQ(about["labels"].size(), 10u);
}

}  // namespace
}  // namespace gradring
