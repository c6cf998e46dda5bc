// SPDX-License-Identifier: Apache-2.0
// The C++ API in this process, beside the program: the same losses, weights and messages.
#include <gmock/gmock.h>
#include <gradring/gradring.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/train/app/commands/support/workplace.h"

namespace gradring {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using tests::Words;

/// The images of a Workplace.
class Images : public Dataset {
 public:
  explicit Images(std::int64_t size) : size_(size) {}
  std::string name() const override { return "images"; }
  std::int64_t size() const override { return size_; }
  ImageShape shape() const override { return {.height = 28, .width = 28}; }
  int classes() const override { return 10; }
  int read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    for (std::size_t i = 0; i < pixels.size(); ++i)
      pixels[i] = static_cast<std::uint8_t>((static_cast<std::size_t>(index) * pixels.size() + i) % 251);
    return static_cast<int>(index * 7 % 10);
  }

 private:
  std::int64_t size_;
};

/// What a test lets a data set do wrong.
struct Wrong : Images {
  Wrong() : Images(64) {}
  int label = 3;
  int label_count = 10;
  std::string called = "wrong";
  std::string name() const override { return called; }
  int classes() const override { return label_count; }
  std::vector<std::string> names;
  std::vector<std::string> class_names() const override { return names; }
  int read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    Images::read(index, pixels);
    return index == 5 ? label : 0;
  }
};

class Api : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return place_.path(name).string(); }

  Options options(int ranks = 1) const {
    Options all;
    all.set("nprocs", ranks).set("epochs", 2).set("batch-size", 8).set("device", "cpu").set("run-dir", path("run"));
    return all;
  }

  /// The message and the exit code of the error that `call` throws.
  static std::pair<std::string, int> error_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return {error.what(), error.exit_code()};
    }
    return {"no error", 0};
  }
  static std::string message_of(const std::function<void()>& call) { return error_of(call).first; }

  /// The losses that a run recorded.
  static std::vector<double> losses_of(const fs::path& run) {
    std::vector<double> losses;
    std::ifstream file(run / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      const auto event = nlohmann::json::parse(line);
      if (event.at("event") == "train") losses.push_back(event.at("loss"));
    }
    return losses;
  }

  const tests::Workplace place_;
  const Images train_set_{64}, test_set_{32};
  const Model convnet_ = Model::built_in("convnet");
};

TEST_F(Api, TrainsAsTheProgramDoes) {
  for (const std::string zero : {"0", "3"}) {
    std::vector<double> losses;
    std::vector<double> accuracies;
    const Observer observer{.step = [&](const StepReport& step) { losses.push_back(step.loss); },
                            .evaluation = [&](const EvaluationReport& found) { accuracies.push_back(found.accuracy); },
                            .remark = {}};
    const Result result = fit(convnet_, train_set_, test_set_,
                              options(2).set("zero", zero).set("run-dir", path("api-" + zero)), observer);
    const auto end = place_.run({"train", "--dataset", "mnist", "--data-dir", "data", "--nprocs", "2", "--epochs", "2",
                                 "--batch-size", "8", "--device", "cpu", "--zero", zero, "--run-dir", "program-" + zero,
                                 "--progress", "none"});
    ASSERT_EQ(end.code, 0) << end.err;
    EXPECT_THAT(losses, SizeIs(8));
    EXPECT_EQ(losses, losses_of(path("program-" + zero)));
    EXPECT_EQ(losses, losses_of(result.run_dir));
    std::ifstream file(path("program-" + zero) + "/summary.json");
    const auto summary = nlohmann::json::parse(file);
    EXPECT_EQ(result.weights_sha256, summary.at("parameters_sha256").get<std::string>());
    EXPECT_EQ(result.accuracy, summary.at("accuracy").get<double>());
    EXPECT_THAT(accuracies, SizeIs(2));
    EXPECT_EQ(accuracies.back(), result.accuracy);
    EXPECT_EQ(result.ranks, 2);
    EXPECT_EQ(result.steps, 8);
    EXPECT_TRUE(fs::exists(result.checkpoint)) << result.checkpoint;
  }
}

TEST_F(Api, EvaluatesAndSavesWhatItHasTrained) {
  const Result result = fit(convnet_, train_set_, test_set_, options());
  const Evaluation newest = evaluate(result.run_dir, convnet_, test_set_);
  EXPECT_EQ(newest.accuracy, result.accuracy);
  EXPECT_EQ(newest.samples, 32);
  EXPECT_THAT(newest.logits, SizeIs(320));
  for (const std::string name : {"weights.safetensors", "weights.pt"}) {
    save_weights(result.checkpoint, path(name));
    EXPECT_EQ(evaluate(path(name), convnet_, test_set_).logits, newest.logits) << name;
    EXPECT_THAT(message_of([&] { save_weights(result.checkpoint, path(name)); }), HasSubstr("already exists"));
  }
  EXPECT_EQ(place_.run({"eval", "weights.pt", "--dataset", "mnist", "--data-dir", "data"}).code, 0);
}

TEST_F(Api, ResumesWithoutARemarkOnTheDataSet) {
  fit(convnet_, train_set_, test_set_, options(2).set("steps", 4).set("epochs", 0));
  std::vector<std::string> remarks;
  const Observer observer{.step = {}, .evaluation = {}, .remark = [&](const auto& text) { remarks.push_back(text); }};
  const Result resumed =
      fit(convnet_, train_set_, test_set_, options(2).set("steps", 8).set("epochs", 0).set("resume", "auto"), observer);
  EXPECT_THAT(remarks, testing::Contains(AllOf(HasSubstr("4 steps done"), HasSubstr("changed options: steps 4 -> 8"),
                                               Not(HasSubstr("dataset")))));
  const Result whole =
      fit(convnet_, train_set_, test_set_, options(2).set("steps", 8).set("epochs", 0).set("run-dir", path("whole")));
  EXPECT_EQ(resumed.weights_sha256, whole.weights_sha256);
  const Result again =
      fit(convnet_, train_set_, test_set_, options(2).set("steps", 8).set("epochs", 0).set("resume", "auto"));
  EXPECT_EQ(again.weights_sha256, whole.weights_sha256) << "of a run that had finished";
}

TEST_F(Api, BuildsAModelOfLayersOrText) {
  Model layers;
  layers.add("conv2d", "conv1", {{"out", 4}, {"kernel", "2 + 1"}, {"bias", false}})
      .add("batch_norm2d", "bn1", {{"eps", 1e-3}})
      .add("add", "sum", {{"inputs", std::vector<std::string>{"bn1", "conv1"}}})
      .add("flatten", "flatten")
      .add("linear", "fc", {{"out", "classes"}});
  EXPECT_EQ(layers.toml(),
            "layers = [\n"
            "  { conv2d = \"conv1\", out = 4, kernel = \"2 + 1\", bias = false },\n"
            "  { batch_norm2d = \"bn1\", eps = 0.001 },\n"
            "  { add = \"sum\", inputs = [\"bn1\", \"conv1\"] },\n"
            "  { flatten = \"flatten\" },\n"
            "  { linear = \"fc\", out = \"classes\" },\n]\n");
  EXPECT_EQ(LayerValue(1e-12).toml(), "1e-12");
  EXPECT_EQ(LayerValue(1e20).toml(), "1e+20");
  EXPECT_EQ(LayerValue(2.0).toml(), "2.0");
  const Result by_layers = fit(layers, train_set_, test_set_, options());
  const Result by_text =
      fit(Model::from_toml(layers.toml()), train_set_, test_set_, options().set("run-dir", path("text")));
  EXPECT_EQ(by_layers.weights_sha256, by_text.weights_sha256);
  const Result by_file = fit(Model::from_file(path("text") + "/model.toml"), train_set_, test_set_,
                             options().set("run-dir", path("file")));
  EXPECT_EQ(by_layers.weights_sha256, by_file.weights_sha256);
  EXPECT_THAT(message_of([] { Model::built_in("lenet5").add("relu", "relu1"); }), HasSubstr("which is built in"));
}

TEST_F(Api, RejectsWrongArgumentsWithTheProgramsMessages) {
  Options any;
  EXPECT_THAT(message_of([&] { any.set("bath-size", 3); }), HasSubstr("Did you mean 'batch-size'?"));
  EXPECT_THAT(message_of([&] { any.set("zero", 4); }), HasSubstr("--zero is '4'"));
  EXPECT_THAT(message_of([&] { any.set("model", "convnet"); }), HasSubstr("arguments of fit()"));
  EXPECT_THAT(message_of([] { Model::built_in("resnet"); }), HasSubstr("resnet18"));
  EXPECT_THAT(any.values(), IsEmpty());
  const auto [message, code] = error_of([&] {
    fit(Model::from_toml("layers = [\n  { linear = \"fc\", out = \"classes\" },\n]", "mine"), train_set_, test_set_);
  });
  EXPECT_THAT(message, HasSubstr("mine.toml:2: fc"));
  EXPECT_EQ(code, 2);
  EXPECT_THAT(
      message_of([&] { fit(convnet_, train_set_, test_set_, options().set("zero", 1).set("allreduce", "direct")); }),
      HasSubstr("--zero uses the ring's reduce-scatter"));
  EXPECT_EQ(error_of([&] { evaluate(path("nothing"), convnet_, test_set_); }).second, 4);
}

TEST_F(Api, TakesParameterGroupsOfTheProgramsModel) {
  Model layers;
  layers.add("flatten", "flatten").add("linear", "head", {{"out", "classes"}});
  const Result one = fit(layers, train_set_, test_set_, options());
  const Result faster =
      fit(layers, train_set_, test_set_, options().set("run-dir", path("group")).set("group", "head.*:lr=0.5"));
  EXPECT_NE(one.weights_sha256, faster.weights_sha256);
  EXPECT_EQ(error_of([&] { fit(layers, train_set_, test_set_, options().set("group", "fc.*:lr=0.5")); }).second, 2);
}

TEST_F(Api, RejectsWrongDataSets) {
  Wrong set;
  const auto message = [&] { return message_of([&] { fit(convnet_, set, set, options()); }); };
  set.label = 10;
  EXPECT_THAT(message(), HasSubstr("sample 5 of the data set wrong has label 10, expected 0 to 9"));
  set.label_count = 257;
  EXPECT_THAT(message(), HasSubstr("has 257 classes, expected 1 to 256"));
  set.label_count = 10;
  set.names = {"a", "b"};
  EXPECT_THAT(message(), HasSubstr("has 2 names for its 10 classes"));
  set.names = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "\xff"};
  EXPECT_THAT(message(), HasSubstr("the name of class 9 is not a line of text in UTF-8"));
  set.called = "../x";
  EXPECT_THAT(message(), HasSubstr("the name of a data set is '../x'"));
  EXPECT_THAT(message_of([&] { fit(convnet_, Images(4), test_set_, options()); }), HasSubstr("lower it"));
}

TEST_F(Api, RecordsNamesOfClassesAndNormalization) {
  Wrong set;
  set.names = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "T-shirt/top"};
  const Result result = fit(convnet_, set, set, options().set("normalize", "0.25:0.5").set("epochs", 1));
  std::ifstream file(std::filesystem::path(result.checkpoint) / "meta.json");
  const std::string meta(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(meta, AllOf(HasSubstr("T-shirt/top"), HasSubstr("0.25")));
  const Evaluation found = evaluate(result.checkpoint, convnet_, set, Options());
  EXPECT_NEAR(found.loss, result.loss, 1e-5) << "normalized as in the training";
}

TEST_F(Api, LetsTheCallersErrorsThrough) {
  struct Own {};
  for (const int ranks : {1, 2}) {
    const Observer observer{.step =
                                [](const StepReport& step) {
                                  if (step.step == 2) throw Own();
                                },
                            .evaluation = {},
                            .remark = {}};
    EXPECT_THROW(fit(convnet_, train_set_, test_set_,
                     options(ranks).set("run-dir", path("own" + std::to_string(ranks))), observer),
                 Own);
  }
}

/// Ranks that have not failed wait for --timeout, 30 s, unless they learn of the failure.
TEST_F(Api, FailsAtOnceWithTheErrorOfTheRankThatFailed) {
  fit(convnet_, train_set_, test_set_, options());
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THAT(error_of([&] { fit(convnet_, train_set_, test_set_, options(3)); }).first, HasSubstr("/run"));
  const Options diverging = options(3).set("inject", "nan:rank=1,step=2").set("run-dir", path("nan"));
  EXPECT_EQ(error_of([&] { fit(convnet_, train_set_, test_set_, diverging); }).second, 5);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
}

}  // namespace
}  // namespace gradring
