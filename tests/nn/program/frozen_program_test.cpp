// SPDX-License-Identifier: Apache-2.0
// Programs of models with frozen parameters: the same gradients of the others, and no work for gradients that nobody
// needs.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <random>

#include "kernels/base/error.h"
#include "nn/backend/decorators.h"
#include "tests/nn/support/program_rig.h"

namespace gradring::tests {
namespace {

using kernels::DType;
using nn::Checkpointing;
using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

struct DrawnSamples {
  std::vector<float> images;
  std::vector<std::int32_t> labels;

  DrawnSamples(const nn::Model& model, std::int64_t count, unsigned seed)
      : images(static_cast<std::size_t>(count * model.sample.elements())), labels(static_cast<std::size_t>(count)) {
    std::mt19937 random(seed);
    for (float& value : images) value = std::uniform_real_distribution<float>(-1, 1)(random);
    for (std::int32_t& label : labels) label = static_cast<std::int32_t>(random() % model.classes);
  }
};

/// Trains only the parameters whose names begin with one of `trained`; with `but`, all but these.
nn::Model with_trained(nn::Model model, const std::vector<std::string>& trained, bool but = false) {
  for (const nn::Parameter& parameter : nn::parameters_of(model)) {
    const bool listed =
        std::ranges::any_of(trained, [&](const std::string& name) { return parameter.name.starts_with(name); });
    if (listed == but) nn::freeze(model, parameter.name);
  }
  return model;
}

/// The gradients that a plan's backward pass was asked for: "dx", "dresidual", and "d0", "d1" of its parameters.
using Asked = std::map<std::string, std::vector<std::string>>;

class RecordedPlan final : public nn::PlanDecorator {
 public:
  RecordedPlan(std::unique_ptr<nn::Plan> inner, std::string layers, Asked& asked)
      : PlanDecorator(std::move(inner)), layers_(std::move(layers)), asked_(asked) {}

  void enqueue_backward(kernels::Stream& stream, const nn::BackwardPass& pass) override {
    std::vector<std::string>& mine = asked_[layers_];
    for (std::size_t i = 0; i < pass.gradients.size(); ++i)
      if (pass.gradients[i]) mine.push_back("d" + std::to_string(i));
    if (pass.dx) mine.emplace_back("dx");
    if (pass.dresidual) mine.emplace_back("dresidual");
    PlanDecorator::enqueue_backward(stream, pass);
  }

 private:
  std::string layers_;
  Asked& asked_;
};

/// Names plans by their layers: "bn3 sum relu2".
class RecordedBackend final : public nn::BackendDecorator {
 public:
  RecordedBackend(std::unique_ptr<nn::Backend> inner, Asked& asked)
      : BackendDecorator(*inner), inner_(std::move(inner)), asked_(asked) {}

  std::unique_ptr<nn::Plan> plan(std::span<const nn::NodeSpec> nodes) override {
    auto plan = BackendDecorator::plan(nodes);
    std::string layers;
    for (const nn::NodeSpec& node : nodes.first(plan->nodes())) layers += (layers.empty() ? "" : " ") + node.name;
    return std::make_unique<RecordedPlan>(std::move(plan), layers, asked_);
  }

 private:
  std::unique_ptr<nn::Backend> inner_;
  Asked& asked_;
};

Asked asked_for(const nn::Model& model, const std::string& backend = "cpu") {
  Asked asked;
  RigDevice on = on_host(backend);
  on.backend = std::make_unique<RecordedBackend>(std::move(on.backend), asked);
  ProgramRig rig(model, 2, std::move(on));
  const DrawnSamples samples(model, 2, 1);
  rig.draw_weights(1);
  rig.run(samples.images, samples.labels);
  return asked;
}

TEST(FrozenProgram, BackwardEndsWhereNothingBeforeIsTrained) {
  EXPECT_THAT(asked_for(with_trained(batch_norm_model(), {"fc"})), ElementsAre(Pair("fc", ElementsAre("d0", "d1"))));
  EXPECT_THAT(asked_for(with_trained(batch_norm_model(), {"fc.bias"})), ElementsAre(Pair("fc", ElementsAre("d1"))));
  EXPECT_THAT(asked_for(with_trained(batch_norm_model(), {"bn4.weight", "fc"})),
              UnorderedElementsAre(Pair("fc", ElementsAre("d0", "d1", "dx")), Pair("bn4 sum4", ElementsAre("d0"))));
}

TEST(FrozenProgram, FollowsOnlyTheBranchThatIsTrained) {
  EXPECT_THAT(asked_for(with_trained(batch_norm_model(), {"down"})),
              UnorderedElementsAre(Pair("fc", ElementsAre("dx")), Pair("bn4 sum4", ElementsAre("dx", "dresidual")),
                                   Pair("conv3", ElementsAre("dx")), Pair("bn3 sum relu2", ElementsAre("dx")),
                                   Pair("down", ElementsAre("d0"))));
  EXPECT_THAT(asked_for(with_trained(batch_norm_model(), {"bn2"})),
              UnorderedElementsAre(Pair("fc", ElementsAre("dx")), Pair("bn4 sum4", ElementsAre("dx", "dresidual")),
                                   Pair("conv3", ElementsAre("dx")), Pair("bn3 sum relu2", ElementsAre("dresidual")),
                                   Pair("bn2", ElementsAre("d0", "d1"))));
}

TEST(FrozenProgram, TellsObserversOfTrainedParametersOnly) {
  class Listener final : public nn::StepObserver {
   public:
    void weights_needed(std::span<const int> parameters) override { note(parameters); }
    void gradients_begin(std::span<const int> parameters) override { note(parameters); }
    void gradient_ready(int parameter) override { ready.push_back(parameter); }
    void note(std::span<const int> parameters) { told.insert(told.end(), parameters.begin(), parameters.end()); }
    std::vector<int> told, ready;
  } listener;
  const nn::Model model = with_trained(nn::convnet({28, 28, 1}, 10), {"fc_layers.2", "conv_layers.0.bias"});
  ProgramRig rig(model, 2, "cpu");
  rig.draw_weights(1);
  const DrawnSamples samples(model, 2, 1);
  rig.run(samples.images, samples.labels, &listener);
  EXPECT_THAT(listener.ready, ElementsAre(7, 6, 1));
  EXPECT_EQ(nn::Program::ready_order(model), listener.ready);
  EXPECT_THAT(listener.told, testing::Each(testing::AnyOf(1, 6, 7)));
  EXPECT_THAT(rig.program().parameters_of_plans().front(), ElementsAre(1));
}

TEST(FrozenProgram, WithoutAnythingToTrainIsRejected) {
  EXPECT_THROW(ProgramRig(with_trained(nn::convnet({28, 28, 1}, 10), {}), 2, "cpu"), InvalidArgument);
  ProgramRig(with_trained(nn::convnet({28, 28, 1}, 10), {}), 2, "cpu", nn::ProgramMode::evaluation);
}

TEST(FrozenProgram, AFrozenBackboneNeedsTheMemoryOfAnEvaluation) {
  const nn::Model model = nn::make_model("resnet18-cifar", {32, 32, 3}, 10);
  const ProgramRig frozen(with_trained(model, {"fc"}), 4, "cpu"), all(model, 4, "cpu");
  const ProgramRig evaluation(model, 4, "cpu", nn::ProgramMode::evaluation);
  const auto total = [](const ProgramRig& rig) {
    return rig.program().memory().activations + rig.program().memory().activation_gradients;
  };
  EXPECT_LT(total(frozen), total(evaluation) + (std::size_t{64} << 10)) << "features, logits and their gradients";
  EXPECT_GT(total(all), 5 * total(frozen));
}

/// A frozen prefix runs within the budget, and keeps what trained layers read of it.
TEST(FrozenProgram, KeepsToTheBudgetOfActivations) {
  constexpr std::size_t kLogits = 1024;  // besides
  for (const nn::Model& model :
       {with_trained(residual_model(), {"fc"}), with_trained(residual_model(), {"conv4", "fc"}),
        with_trained(residual_model(), {"conv2", "conv3", "fc"}), with_trained(batch_norm_model(), {"bn4", "fc"}),
        with_trained(batch_norm_model(), {"bn2", "fc"}), with_trained(nn::convnet({28, 28, 1}, 10), {"fc_layers.2"})}) {
    const auto memory = [&](std::size_t budget) {
      return ProgramRig(model, 16, "cpu", nn::ProgramMode::training, DType::f32,
                        {.kind = Checkpointing::Kind::automatic, .budget_bytes = budget})
          .program()
          .memory()
          .activations;
    };
    const std::size_t least = memory(0);
    EXPECT_NO_THROW(memory(least)) << model.name;
    for (std::size_t eighths = 1; eighths <= 16; ++eighths) {
      const std::size_t budget = least * eighths / 8;
      try {
        EXPECT_LE(memory(budget), budget + kLogits)
            << model.name << " without " << testing::PrintToString(model.frozen);
      } catch (const InvalidArgument& error) {
        EXPECT_LT(budget, least) << error.what();
      }
    }
  }
}

struct FrozenCase {
  std::string backend;
  DType dtype;
};
void PrintTo(const FrozenCase& of, std::ostream* out) { *out << of.backend << " " << name_of(of.dtype); }

class Frozen : public testing::TestWithParam<FrozenCase> {
 protected:
  ProgramRig rig(const nn::Model& model, const Checkpointing& checkpointing = {}) const {
    return {model, 4, GetParam().backend, nn::ProgramMode::training, GetParam().dtype, checkpointing};
  }

  /// Compares what a pass gives with what it gives where all is trained.
  void expect_same_gradients(const nn::Model& model, const Checkpointing& checkpointing = {}) const {
    nn::Model all_trained = model;
    all_trained.frozen.clear();
    ProgramRig all = rig(all_trained), some = rig(model, checkpointing);
    all.draw_weights(3);
    some.draw_weights(3);
    const double tolerance = GetParam().dtype == DType::f32 ? 2e-5 : 2e-2;
    for (const std::int64_t batch : {4, 3}) {
      const DrawnSamples samples(model, batch, static_cast<unsigned>(batch));
      const auto expected = all.run(samples.images, samples.labels), found = some.run(samples.images, samples.labels);
      EXPECT_LT(relative_error(found.logits, expected.logits), tolerance);
      EXPECT_NEAR(found.loss, expected.loss, tolerance);
      for (std::size_t i = 0; i < some.parameters().size(); ++i) {
        if (some.parameters()[i].frozen) continue;
        EXPECT_LT(relative_error(some.gradient(i), all.gradient(i)), tolerance) << some.parameters()[i].name;
      }
      for (std::size_t i = 0; i < all.buffers().size(); ++i)
        EXPECT_LT(relative_error(some.buffers()[i], all.buffers()[i]), tolerance) << "buffer " << i;
    }
  }
};

TEST_P(Frozen, OtherGradientsAreThoseOfAWholeBackwardPass) {
  const nn::Model convnet = nn::convnet({28, 28, 1}, 10);
  for (const nn::Model& model :
       {with_trained(convnet, {"fc_layers.2"}), with_trained(convnet, {"conv_layers.0"}),
        with_trained(convnet, {"conv_layers.0.bias", "fc_layers.0.weight"}),
        with_trained(convnet, {"conv_layers.3.weight"}), with_trained(convnet, {"fc_layers.2"}, true),
        with_trained(residual_model(), {"fc"}), with_trained(residual_model(), {"down"}),
        with_trained(residual_model(), {"conv1"}), with_trained(residual_model(), {"pre"}),
        with_trained(residual_model(), {"conv2", "conv4.bias"}), with_trained(residual_model(), {"conv3"}, true),
        with_trained(batch_norm_model(), {"fc"}), with_trained(batch_norm_model(), {"down"}),
        with_trained(batch_norm_model(), {"bn2"}), with_trained(batch_norm_model(), {"conv0", "bn3.weight"}),
        with_trained(batch_norm_model(), {"bn0", "bn1", "bn2", "bn3", "bn4"}, true)}) {
    SCOPED_TRACE(model.name + " without " + testing::PrintToString(model.frozen));
    expect_same_gradients(model);
  }
}

TEST_P(Frozen, AlsoWhereActivationsAreRecomputed) {
  for (const nn::Model& model :
       {with_trained(nn::convnet({28, 28, 1}, 10), {"fc_layers"}), with_trained(residual_model(), {"conv2", "fc"}),
        with_trained(residual_model(), {"conv4"}), with_trained(batch_norm_model(), {"conv1", "bn4"}),
        with_trained(batch_norm_model(), {"fc"})})
    for (const std::int64_t segments : {2, 1000}) {
      SCOPED_TRACE(model.name + " without " + testing::PrintToString(model.frozen));
      expect_same_gradients(model, {.kind = Checkpointing::Kind::segments, .segments = segments});
    }
}

INSTANTIATE_TEST_SUITE_P(Backends, Frozen,
                         testing::Values(FrozenCase{"reference", DType::f32}, FrozenCase{"cpu", DType::f32},
                                         FrozenCase{"kernels", DType::f32}, FrozenCase{"cpu", DType::f16}),
                         [](const auto& info) {
                           return info.param.backend + "_" + std::string(name_of(info.param.dtype));
                         });

}  // namespace
}  // namespace gradring::tests
