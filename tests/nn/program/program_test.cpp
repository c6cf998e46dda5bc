// SPDX-License-Identifier: Apache-2.0
#include "nn/program/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/host/host_device.h"
#include "kernels/ops/kernel_set.h"
#include "nn/backend/kernels/kernel_plans.h"
#include "tests/nn/support/program_rig.h"
#include "tests/support/safetensors.h"

namespace gradring::tests {
namespace {

using testing::ElementsAre;

struct Samples {
  std::vector<float> images;
  std::vector<std::int32_t> labels;

  Samples(std::size_t count, unsigned seed) : images(count * 28 * 28), labels(count) {
    std::mt19937 random(seed);
    for (float& value : images) value = std::uniform_real_distribution<float>(-1, 1)(random);
    for (std::int32_t& label : labels) label = static_cast<std::int32_t>(random() % 10);
  }
};

/// Notes what it hears: parameters as they come, -1 for before_forward, -2 for before_backward.
class Listener final : public nn::StepObserver {
 public:
  void before_forward() override { heard.push_back(-1); }
  void before_backward() override { heard.push_back(-2); }
  void weights_needed(std::span<const int> parameters) override {
    needed.emplace_back(parameters.begin(), parameters.end());
  }
  void gradients_begin(std::span<const int> parameters) override { begun.insert(parameters.begin(), parameters.end()); }
  void gradient_ready(int parameter) override {
    EXPECT_EQ(begun.erase(parameter), 1u) << "the gradient of " << parameter << " was written before it was announced";
    heard.push_back(parameter);
  }
  std::vector<int> heard;
  std::vector<std::vector<int>> needed;  // at once
  std::set<int> begun;
};

class ProgramOf : public testing::TestWithParam<std::string> {};

TEST_P(ProgramOf, TellsItsObserverOfGradientsInReadyOrder) {
  ProgramRig rig(nn::convnet({28, 28, 1}, 10), 2, GetParam());
  rig.draw_weights(1);
  const Samples samples(2, 5);
  Listener listener;
  rig.run(samples.images, samples.labels, &listener);
  EXPECT_THAT(listener.heard, ElementsAre(-1, -2, 7, 6, 5, 4, 3, 2, 1, 0));
  EXPECT_THAT(nn::Program::ready_order(nn::convnet({28, 28, 1}, 10)), ElementsAre(7, 6, 5, 4, 3, 2, 1, 0));
}

// The loss is linear in the distribution that the labels stand for.
TEST_P(ProgramOf, SoftLabelsGiveTheMeansOfWhatTheirClassesGive) {
  constexpr std::int64_t kClasses = 4;
  ProgramRig rig(nn::convnet({28, 28, 1}, kClasses), 3, GetParam());
  rig.draw_weights(1);
  const Samples samples(3, 5);
  struct Found {
    double loss;
    std::vector<float> gradient;
  };
  const auto run = [&](const std::vector<std::int32_t>& labels, const ProgramRig::Soft& soft = {}) {
    rig.set_soft(soft);
    const double loss = rig.run(samples.images, labels).loss;
    return Found{loss, rig.gradient(0)};
  };
  const auto expect_mean = [&](const Found& soft, const std::vector<std::pair<double, Found>>& parts) {
    double loss = 0;
    std::vector<float> gradient(soft.gradient.size());
    for (const auto& [weight, part] : parts) {
      loss += weight * part.loss;
      for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += static_cast<float>(weight) * part.gradient[i];
    }
    EXPECT_NEAR(soft.loss, loss, 1e-5);
    EXPECT_LT(relative_error(soft.gradient, gradient), 1e-4);
  };
  const std::vector<std::int32_t> a = {0, 1, 3}, b = {2, 1, 0};
  expect_mean(run(a, {.labels_b = b, .weights_b = {0.25f, 0.25f, 0.25f}}), {{0.75, run(a)}, {0.25, run(b)}});
  std::vector<std::pair<double, Found>> smoothed = {{0.9, run(a)}};
  for (std::int32_t c = 0; c < kClasses; ++c) smoothed.push_back({0.1 / kClasses, run({c, c, c})});
  expect_mean(run(a, {.label_smoothing = 0.1f}), smoothed);
}

TEST_P(ProgramOf, TellsItsObserverOfWeightsBeforeTheyAreRead) {
  for (const bool checkpoints : {false, true}) {
    ProgramRig rig(nn::convnet({28, 28, 1}, 10), 2, GetParam(), nn::ProgramMode::training, kernels::DType::f32,
                   {.kind = checkpoints ? nn::Checkpointing::Kind::automatic : nn::Checkpointing::Kind::none});
    rig.draw_weights(1);
    const Samples samples(2, 5);
    Listener listener;
    rig.run(samples.images, samples.labels, &listener);
    EXPECT_TRUE(listener.begun.empty());
    Listener told;
    rig.run_nothing(told);
    EXPECT_EQ(told.heard, listener.heard) << "a pass without samples";
    EXPECT_EQ(told.needed, listener.needed);
    for (std::size_t i = 0; i < rig.parameters().size(); ++i)
      EXPECT_TRUE(std::ranges::all_of(rig.gradient(i), [](float value) { return value == 0; })) << i;
    std::vector<std::vector<int>> once = rig.program().parameters_of_plans();
    const std::size_t plans = once.size();
    std::vector<int> all;
    for (const auto& parameters : once) all.insert(all.end(), parameters.begin(), parameters.end());
    EXPECT_THAT(all, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
    once.pop_back();  // the head has no forward pass of its own
    const auto& needed = listener.needed;
    const std::vector<std::size_t>& ends = rig.program().segments().ends;
    const std::size_t computed_twice = ends.size() == 1 ? 0 : ends[ends.size() - 2] + 1 - (ends.size() - 1);
    ASSERT_EQ(needed.size(), plans - 1 + computed_twice + plans);
    EXPECT_TRUE(std::equal(once.begin(), once.end(), needed.begin())) << "forward, first layer first";
    EXPECT_EQ(needed.back(), once.front()) << "backward ends with the first layer";
  }
}

TEST_P(ProgramOf, AShortBatchGivesWhatAProgramOfThatSizeGives) {
  const Samples samples(3, 6);
  nn::NoObserver observer;
  ProgramRig large(nn::convnet({28, 28, 1}, 10), 8, GetParam()), small(nn::convnet({28, 28, 1}, 10), 3, GetParam());
  large.draw_weights(2);
  small.draw_weights(2);
  const Samples full(8, 7);
  large.run(full.images, full.labels, &observer);  // leaves other activations behind
  const auto a = large.run(samples.images, samples.labels, &observer);
  const auto b = small.run(samples.images, samples.labels, &observer);
  EXPECT_LT(relative_error(a.logits, b.logits), 1e-6);
  for (std::size_t i = 0; i < large.parameters().size(); ++i)
    EXPECT_LT(relative_error(large.gradient(i), small.gradient(i)), 1e-5) << large.parameters()[i].name;
}

TEST_P(ProgramOf, EvaluationGivesTheSameLogitsInLessMemory) {
  const Samples samples(4, 8);
  ProgramRig training(nn::convnet({28, 28, 1}, 10), 4, GetParam());
  ProgramRig evaluation(nn::convnet({28, 28, 1}, 10), 4, GetParam(), nn::ProgramMode::evaluation);
  training.draw_weights(3);
  evaluation.draw_weights(3);
  const auto a = training.run(samples.images, samples.labels);
  const auto b = evaluation.run(samples.images, samples.labels);
  EXPECT_EQ(a.logits, b.logits);
  EXPECT_EQ(a.correct, b.correct);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_LT(evaluation.program().memory().total(), training.program().memory().total());
}

TEST_P(ProgramOf, RejectsBatchesItWasNotMadeFor) {
  ProgramRig rig(nn::convnet({28, 28, 1}, 10), 2, GetParam());
  rig.draw_weights(1);
  const Samples three(3, 5), none(0, 5);
  EXPECT_THROW(rig.run(three.images, three.labels), InvalidArgument);
  EXPECT_THROW(rig.run(none.images, none.labels), InvalidArgument);
  EXPECT_THROW(ProgramRig(nn::convnet({28, 28, 1}, 10), 0, GetParam()), InvalidArgument);
}

TEST_P(ProgramOf, ShortcutsMatchPyTorch) {
  const auto golden = read_golden("residual_step_seed0");
  const auto classes = golden.at("labels").as<std::int64_t>();
  const std::vector<float> images = golden.at("images").as<float>();
  const std::vector<std::int32_t> labels(classes.begin(), classes.end());
  ProgramRig rig(residual_model(), 6, GetParam());
  rig.draw_weights(0);
  const auto result = rig.run(images, labels);
  EXPECT_LT(relative_error(result.logits, golden.at("logits").as<float>()), 1e-5);
  EXPECT_NEAR(result.loss, golden.at("loss").as<float>()[0], 1e-5);
  for (std::size_t i = 0; i < rig.parameters().size(); ++i)
    EXPECT_LT(relative_error(rig.gradient(i), golden.at("grad." + rig.parameters()[i].name).as<float>()), 1e-5)
        << rig.parameters()[i].name;
  ProgramRig evaluation(residual_model(), 5, GetParam(), nn::ProgramMode::evaluation);
  evaluation.draw_weights(0);
  EXPECT_EQ(evaluation.run(images, labels).logits, result.logits);
}

TEST_P(ProgramOf, BatchNormMatchesPyTorch) {
  const auto golden = read_golden("batch_norm_step_seed0");
  const auto classes = golden.at("labels").as<std::int64_t>();
  const std::vector<float> images = golden.at("images").as<float>();
  const std::vector<std::int32_t> labels(classes.begin(), classes.end());
  const std::vector<nn::Parameter> buffers = nn::buffers_of(batch_norm_model());
  for (const bool recomputes : {false, true}) {
    ProgramRig rig(batch_norm_model(), 6, GetParam(), nn::ProgramMode::training, kernels::DType::f32,
                   {.kind = recomputes ? nn::Checkpointing::Kind::automatic : nn::Checkpointing::Kind::none});
    rig.draw_weights(0);
    const auto result = rig.run(images, labels);
    EXPECT_LT(relative_error(result.logits, golden.at("logits").as<float>()), 1e-5);
    EXPECT_NEAR(result.loss, golden.at("loss").as<float>()[0], 1e-5);
    for (std::size_t i = 0; i < rig.parameters().size(); ++i) {
      const std::string& name = rig.parameters()[i].name;
      EXPECT_LT(relative_error(rig.gradient(i), golden.at("grad." + name).as<float>()), 2e-5) << name;
    }
    for (std::size_t i = 0; i < buffers.size(); ++i)  // moved once, also where forward is recomputed
      EXPECT_LT(relative_error(rig.buffers()[i], golden.at("buffer." + buffers[i].name).as<float>()), 1e-5)
          << buffers[i].name;
    ProgramRig evaluation(batch_norm_model(), 5, GetParam(), nn::ProgramMode::evaluation);
    evaluation.draw_weights(0);
    evaluation.set_buffers(rig.buffers());
    EXPECT_LT(relative_error(evaluation.run(images, labels).logits, golden.at("evaluation").as<float>()), 1e-5);
    EXPECT_EQ(evaluation.buffers(), rig.buffers());
  }
}

TEST_P(ProgramOf, DropoutMatchesPyTorchWithTheSameMask) {
  const auto golden = read_golden("dropout_step_seed0");
  const auto classes = golden.at("labels").as<std::int64_t>();
  const std::vector<float> images = golden.at("images").as<float>();
  const std::vector<std::int32_t> labels(classes.begin(), classes.end());
  for (const bool recomputes : {false, true}) {
    ProgramRig rig(dropout_model(), 6, GetParam(), nn::ProgramMode::training, kernels::DType::f32,
                   {.kind = recomputes ? nn::Checkpointing::Kind::automatic : nn::Checkpointing::Kind::none});
    rig.draw_weights(0);
    rig.set_random({.seed = 11, .first = 40, .stride = 3}, 5);
    const auto result = rig.run(images, labels);
    EXPECT_LT(relative_error(result.logits, golden.at("logits").as<float>()), 1e-5);
    EXPECT_NEAR(result.loss, golden.at("loss").as<float>()[0], 1e-5);
    for (std::size_t i = 0; i < rig.parameters().size(); ++i)
      EXPECT_LT(relative_error(rig.gradient(i), golden.at("grad." + rig.parameters()[i].name).as<float>()), 1e-5)
          << rig.parameters()[i].name;
    rig.set_random({.seed = 11, .first = 40, .stride = 3}, 6);
    EXPECT_NE(rig.run(images, labels).logits, result.logits) << "the next step";
  }
  ProgramRig evaluation(dropout_model(), 5, GetParam(), nn::ProgramMode::evaluation);
  evaluation.draw_weights(0);
  EXPECT_LT(relative_error(evaluation.run(images, labels).logits, golden.at("evaluation").as<float>()), 1e-5);
}

/// A kernel that reads f32 rounds as a cast does.
TEST(Program, TakesABatchInF32WhereItsFirstPlanReadsThat) {
  const auto model = nn::convnet({28, 28, 1}, 10);
  std::vector<kernels::conv_relu_pool::Variant> tensor_cores;
  for (const auto& variant : kernels::kernel_set().conv_relu_pool)
    if (variant.reads) tensor_cores.push_back(variant);
  ASSERT_FALSE(tensor_cores.empty());
  for (auto& variant : tensor_cores) variant.supports = [](const kernels::Device&, kernels::DType) { return true; };
  kernels::KernelSet set = kernels::kernel_set();
  set.conv_relu_pool = tensor_cores;
  const Samples samples(3, 5);
  struct Found {
    std::vector<float> logits, gradient;
    bool operator==(const Found&) const = default;
  };
  const auto run = [&](bool keeps_f32) {
    auto device = std::make_unique<kernels::HostDevice>();
    auto backend = std::make_unique<nn::KernelBackend>(set, *device);
    ProgramRig rig(model, 3, RigDevice{std::move(device), std::move(backend)}, nn::ProgramMode::training,
                   kernels::DType::f16);
    EXPECT_TRUE(rig.program().reads_f32());
    if (keeps_f32) rig.keep_f32();
    rig.draw_weights(1);
    const auto result = rig.run(samples.images, samples.labels);
    return Found{result.logits, rig.gradient(0)};
  };
  EXPECT_EQ(run(true), run(false));

  ProgramRig other(model, 3, "reference", nn::ProgramMode::training, kernels::DType::f16);
  EXPECT_FALSE(other.program().reads_f32());
  other.keep_f32();
  EXPECT_THROW(other.run(samples.images, samples.labels), InvalidArgument);
}

/// Dropout has no plan there: its output is what it reads.
TEST(Program, LeavesDropoutOutWhereNothingIsDropped) {
  nn::Model never = dropout_model();
  for (nn::NamedLayer& layer : never.layers)
    if (auto* const dropout = std::get_if<nn::Dropout>(&layer.layer)) dropout->p = 0;
  const auto plans = [](const nn::Model& model, nn::ProgramMode mode) {
    std::vector<std::string> layers;
    for (const nn::PlanDescription& plan : ProgramRig(model, 2, "reference", mode).program().description())
      layers.insert(layers.end(), plan.layers.begin(), plan.layers.end());
    return layers;
  };
  const std::vector<std::string> others = {"conv0", "relu0", "conv1", "sum", "relu1", "fc"};
  EXPECT_EQ(plans(dropout_model(), nn::ProgramMode::evaluation), others);
  EXPECT_EQ(plans(never, nn::ProgramMode::training), others);
  EXPECT_EQ(plans(dropout_model(), nn::ProgramMode::training).size(), others.size() + 2);
}

TEST(Program, NeedsTheStepToDropOut) {
  ProgramRig rig(dropout_model(), 2, "cpu");
  EXPECT_THROW(rig.run(std::vector<float>(2 * 7 * 7 * 2), {0, 1}), InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Backends, ProgramOf, testing::Values("reference", "cpu"),
                         [](const auto& backend) { return backend.param; });

TEST(Program, RejectsAModelThatDoesNotEndInItsClasses) {
  nn::Model model = nn::convnet({28, 28, 1}, 10);
  model.classes = 11;
  EXPECT_THROW(ProgramRig(model, 2, "reference"), InvalidArgument);
}

TEST(CheckpointedResidual, CutsOnlyWhereOneOutputIsRead) {
  const ProgramRig rig(residual_model(), 2, "reference", nn::ProgramMode::training, kernels::DType::f32,
                       {.kind = nn::Checkpointing::Kind::segments, .segments = 1000});
  const std::vector<nn::PlanDescription> plans = rig.program().description();
  std::vector<std::string> ends;
  for (const std::size_t end : rig.program().segments().ends) ends.push_back(plans[end].layers.back());
  // Not within a block, whose shortcut would be lost.
  EXPECT_THAT(ends, testing::IsSubsetOf({"sum0", "conv0", "relu0", "sum2", "relu2", "sum4", "sum5", "twice", "fc"}));
  EXPECT_GT(ends.size(), 3u);
}

TEST(MakeModel, NamesTheModelsThereAre) { EXPECT_THROW(nn::make_model("resnet", {28, 28, 1}, 10), InvalidArgument); }

}  // namespace
}  // namespace gradring::tests
