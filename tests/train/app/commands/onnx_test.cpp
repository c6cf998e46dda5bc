// SPDX-License-Identifier: Apache-2.0
// gradring export --output FILE.onnx, judged by onnx and onnxruntime. Skipped where the Python of the tests lacks them.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>

#include "data/datasets/digits.h"
#include "tests/data/support/written_cifar10.h"
#include "tests/data/support/written_idx.h"
#include "tests/support/json.h"
#include "tests/support/sanitizer.h"
#include "tests/support/test_python.h"
#include "tests/train/app/commands/support/workplace.h"

namespace gradring {
namespace {

using nlohmann::json;
using tests::ProgramEnd;
using tests::Words;

constexpr std::uint32_t kImages = 300;
/// Of |difference| / max(1, |logit|): other orders of f32 sums.
constexpr double kBound = 1e-5;

class Onnx : public testing::Test {
 protected:
  void SetUp() override {
    const ProgramEnd probe = peer({});
    if (probe.code == tests::kPackageMissing) GTEST_SKIP() << probe.out << "install onnx and onnxruntime by pip";
  }

  ProgramEnd peer(const Words& words) const {
    Words command = {GRADRING_ONNX_PEER};
    command.insert(command.end(), words.begin(), words.end());
    return tests::run_program(tests::python_script(command, place_.path("")));
  }

  json judged(const Words& words) const {
    const ProgramEnd end = peer(words);
    EXPECT_EQ(end.code, 0) << end.err;
    return tests::parse_json(end.out);
  }

  void run(const Words& words) const {
    const ProgramEnd end = place_.run(words);
    ASSERT_EQ(end.code, 0) << end.err;
  }

  tests::Workplace place_;
};

/// A model with a layer of each kind that the built-in ConvNets lack.
constexpr const char* kOtherLayers = "other_layers.toml";
constexpr std::string_view kOtherLayersText = R"(
layers = [
  { conv2d = "conv", out = 8, kernel = 3, padding = 1, bias = false },
  { batch_norm2d = "bn1" },
  { silu = "silu" },
  { conv2d = "depthwise", out = "in", kernel = 3, padding = 1, groups = "in", bias = false },
  { batch_norm2d = "bn2" },
  { add = "sum", inputs = ["bn2", "silu"] },
  { relu = "relu" },
  { max_pool2d = "max", kernel = 3, stride = 2, padding = 1 },
  { avg_pool2d = "avg", kernel = 3, stride = 2, padding = 1 },
  { gelu = "gelu" },
  { global_avg_pool2d = "pool" },
  { flatten = "flatten" },
  { dropout = "dropout", p = 0.1 },
  { linear = "fc", out = "classes", bias = false },
  { scale = "scale", factor = 0.5 },
]
)";

struct ModelCase {
  std::string model;
  std::string dataset;
  json image;  ///< its shape
};

class OnnxModels : public Onnx, public testing::WithParamInterface<ModelCase> {
 protected:
  void SetUp() override {
    Onnx::SetUp();
    if (IsSkipped()) return;
    GetParam().dataset == "cifar10" ? write_photographs() : write_digits();
    place_.folder().write(kOtherLayers, tests::Bytes(kOtherLayersText.begin(), kOtherLayersText.end()));
  }

  /// Digits as MNIST's test set; images.idx for the peer.
  void write_digits() {
    const auto digits = data::make_digits(data::Split::test);
    tests::Bytes pixels, labels;
    for (std::int64_t i = 0; i < kImages; ++i) {
      pixels.insert(pixels.end(), digits->pixels(i).begin(), digits->pixels(i).end());
      labels.push_back(static_cast<std::uint8_t>(digits->label(i)));
    }
    images_ = std::string("data/") + tests::kTestImages;
    place_.folder().write(images_, tests::idx_bytes({kImages, 28, 28}, pixels));
    place_.folder().write(std::string("data/") + tests::kTestLabels, tests::idx_bytes({kImages}, labels));
  }

  /// Records as CIFAR-10's; the same as images.idx.
  void write_photographs() {
    constexpr std::size_t kRecords = 64;
    tests::write_cifar10(place_.folder(), "data", kRecords);
    tests::Bytes pixels;
    for (std::size_t i = 0; i < kRecords; ++i) {
      const tests::Bytes image = tests::cifar10_pixels(static_cast<std::uint8_t>((5 * kRecords + i) % 10));
      pixels.insert(pixels.end(), image.begin(), image.end());
    }
    images_ = "images.idx";
    place_.folder().write(images_, tests::idx_bytes({kRecords, 32, 32, 3}, pixels));
  }

  std::string images_;
};

TEST_P(OnnxModels, PassTheCheckerAndGiveTheSameLogits) {
  const auto& [model, dataset, image] = GetParam();
  run({"train", "--dataset", dataset, "--data-dir", "data", "--model", model, "--steps", "6", "--batch-size", "32",
       "--progress", "none", "--device", "cpu", "--run-dir", "run"});
  run({"export", "--checkpoint", "run", "--output", "model.onnx"});
  const json found = judged({"check", "model.onnx"});
  EXPECT_GE(found["opset"][0], 17);
  json input = {"N"};
  for (const json& extent : image) input.push_back(extent);
  EXPECT_EQ(found["shapes"]["images"], input);
  EXPECT_EQ(found["shapes"]["logits"], json({"N", 10}));
  EXPECT_EQ(found["nodes"][0], "Cast") << "preprocessing comes first";
  EXPECT_EQ(std::ranges::count(found["nodes"], json("BatchNormalization")), model == "airbench94" ? 3 : 0)
      << "convolutions include it, but not where pooling is between";
  EXPECT_EQ(found["metadata"]["model"], std::filesystem::path(model).stem().string());
  EXPECT_EQ(tests::parse_json(found["metadata"]["labels"].get<std::string>()).size(), 10u);
  EXPECT_EQ(tests::parse_json(found["metadata"]["mean"].get<std::string>()).size(), image.back());

  run({"eval", "--checkpoint", "run", "--dataset", dataset == "digits" ? "mnist" : dataset, "--data-dir", "data",
       "--device", "cpu", "--precision", "fp32", "--logits", "logits.npy"});
  const json compared = judged({"compare", "model.onnx", images_, "logits.npy"});
  EXPECT_EQ(compared["differences"].size(), 5u);
  for (const auto& [batch, difference] : compared["differences"].items())
    EXPECT_LT(difference.get<double>(), kBound) << "batches of " << batch;
}

INSTANTIATE_TEST_SUITE_P(
    Models, OnnxModels,
    testing::Values(ModelCase{"convnet", "digits", {28, 28, 1}}, ModelCase{"convnet-deep", "digits", {28, 28, 1}},
                    ModelCase{"convnet", "cifar10", {32, 32, 3}}, ModelCase{"convnet-deep", "cifar10", {32, 32, 3}},
                    ModelCase{"airbench94", "cifar10", {32, 32, 3}}, ModelCase{kOtherLayers, "digits", {28, 28, 1}}),
    [](const auto& test) {
      const std::string& model = test.param.model;
      return std::string(model == "convnet"      ? "ConvNet"
                         : model == "airbench94" ? "Airbench94"
                         : model == kOtherLayers ? "OtherLayers"
                                                 : "ConvNetDeep") +
             (test.param.dataset == "digits" ? "OfDigits" : "OfCifar10");
    });

TEST_F(Onnx, RecognizesRawMnistAsEvalDoes) {
  if (IsSkipped()) return;
  if (!tests::kSanitizer.empty()) GTEST_SKIP() << "a training takes too long under a sanitizer, and says nothing new";
  const char* root = std::getenv("GRADRING_DATA_DIR");
  if (!root) GTEST_SKIP() << "set GRADRING_DATA_DIR to a folder with mnist/";
  const std::filesystem::path folder = std::filesystem::absolute(root) / "mnist";
  run({"train", "--dataset", "mnist", "--data-dir", folder, "--steps", "300", "--progress", "none", "--device", "cpu",
       "--run-dir", "run"});
  run({"export", "--checkpoint", "run", "--output", "model.onnx"});
  const ProgramEnd eval =
      place_.run({"eval", "--checkpoint", "run", "--precision", "fp32", "--device", "cpu", "--json"});
  const json ours = tests::parse_json(eval.out);
  const json theirs = judged({"accuracy", "model.onnx", folder / tests::kTestImages, folder / tests::kTestLabels});
  EXPECT_EQ(theirs["samples"], 10'000);
  EXPECT_GT(theirs["correct"], 9'500);
  EXPECT_NEAR(theirs["correct"].get<double>(), ours["correct"].get<double>(), 1) << "a tie may be rounded otherwise";
}

}  // namespace
}  // namespace gradring
