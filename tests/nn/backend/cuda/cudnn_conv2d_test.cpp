// SPDX-License-Identifier: Apache-2.0
// Against a fake of cuDNN that computes what it is told, so that what is told is tested. No GPU has run the real one yet.
#include "nn/backend/cuda/cuda_libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "nn/backend/cuda/cuda_backend.h"
#include "nn/backend/cuda/cudnn.h"
#include "tests/nn/backend/cuda/fake_cudnn.h"
#include "tests/nn/backend/cuda/plan_rig.h"

namespace gradring::tests {
namespace {

using kernels::DType;

constexpr nn::Conv2d kConvolutions[] = {
    {.in_channels = 1, .out_channels = 3, .kernel = 3},
    {.in_channels = 3, .out_channels = 2, .kernel = 3, .stride = 2, .padding = 1},
    {.in_channels = 4, .out_channels = 5, .kernel = 1},
    {.in_channels = 4, .out_channels = 6, .kernel = 3, .padding = 1, .groups = 2, .bias = false},
    {.in_channels = 5, .out_channels = 5, .kernel = 3, .stride = 2, .padding = 1, .groups = 5},
};

class CudnnConv2d : public testing::Test {
 protected:
  std::unique_ptr<nn::Plan> plan(PlanRig& rig, const nn::CudaBackendOptions& options = {}) {
    const DType dtype = rig.nodes().front().dtype;
    return nn::plan_cudnn_conv2d(rig.nodes(), std::make_shared<nn::Cudnn>(fake_.api(), rig.device(), options),
                                 nn::HelperKernels::pick(kernels::kernel_set(), rig.device(), dtype));
  }

  /// Every convolution in every type, with and without a ReLU, in the full batch and in a short one.
  void expect_agreement() {
    for (const nn::Conv2d& convolution : kConvolutions)
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
        for (const bool relu : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << convolution.in_channels << " channels " << name_of(dtype) << " relu " << relu);
          PlanRig rig(layer_nodes(convolution, {3, 6, 5, convolution.in_channels}, relu, dtype));
          const auto cudnn = plan(rig);
          ASSERT_NE(cudnn, nullptr);
          EXPECT_EQ(cudnn->nodes(), rig.nodes().size());
          for (const std::int64_t batch : {3, 2}) expect_same(rig.run({cudnn.get()}, batch), rig.run_ours(batch));
        }
  }

  FakeCudnn fake_;
};

TEST_F(CudnnConv2d, AgreesWithOurKernels) { expect_agreement(); }

TEST_F(CudnnConv2d, AgreesWhereNothingIsFused) {
  fake_.fuses = false;
  expect_agreement();
}

TEST_F(CudnnConv2d, AgreesWhereGradientsOfWeightsNeedNoConversion) {
  fake_.f32_dw = true;
  expect_agreement();
}

/// It keeps a NaN; cuDNN does not say that its own does.
TEST_F(CudnnConv2d, ComputesReluWithOurKernel) {
  PlanRig rig(layer_nodes(kConvolutions[0], {2, 5, 5, 1}, true, DType::f16));
  int relus = 0;
  static int* counted = nullptr;
  counted = &relus;
  nn::HelperKernels helpers = nn::HelperKernels::pick(kernels::kernel_set(), rig.device(), DType::f16);
  helpers.relu.forward = [](kernels::Stream&, const kernels::relu::ForwardArgs&) { ++*counted; };
  const auto cudnn = nn::plan_cudnn_conv2d(
      rig.nodes(), std::make_shared<nn::Cudnn>(fake_.api(), rig.device(), nn::CudaBackendOptions{}), helpers);
  const PlanResult result = rig.run({cudnn.get()}, 2);
  EXPECT_EQ(relus, 1);
  EXPECT_THAT(result.y, testing::Contains(testing::Lt(0))) << "before the ReLU";
}

TEST_F(CudnnConv2d, RunsOneEngineForEachPassAndLeavesNoDescriptor) {
  PlanRig rig(layer_nodes(kConvolutions[0], {2, 5, 5, 1}, true, DType::f16));
  {
    const auto cudnn = plan(rig);
    rig.run({cudnn.get()}, 2);
  }
  EXPECT_EQ(fake_.executed.size(), 3u) << "forward, wgrad, dgrad";
  EXPECT_EQ(fake_.live_descriptors, 0);
}

TEST_F(CudnnConv2d, IsNoneWithoutAnEngine) {
  fake_.mode_a.emplace();
  PlanRig rig(layer_nodes(kConvolutions[0], {2, 5, 5, 1}, false, DType::f16));
  EXPECT_EQ(plan(rig), nullptr);
}

TEST_F(CudnnConv2d, StatesTheLargestWorkspaceAndRoomForAConversion) {
  fake_.mode_a = {{.index = 1, .notes = {}, .workspace_bytes = 1000, .knobs = {}}};
  PlanRig f32(layer_nodes(kConvolutions[1], {2, 6, 5, 3}, true, DType::f32));
  EXPECT_EQ(plan(f32)->workspace_bytes(), 1024u);
  PlanRig f16(layer_nodes(kConvolutions[1], {2, 6, 5, 3}, true, DType::f16));
  EXPECT_EQ(plan(f16)->workspace_bytes(), 1024u + 2 * 3 * 3 * 3 * 2);
}

TEST_F(CudnnConv2d, TakesWhatTheRankThatChoosesHasFoundFastest) {
  fake_.mode_a = {{.index = 7, .notes = {}, .knobs = {}}, {.index = 8, .notes = {}, .knobs = {}}};
  PlanRig rig(layer_nodes(kConvolutions[0], {2, 5, 5, 1}, true, DType::f16));
  nn::CudaBackendOptions options;
  options.autotune = true;
  int choices = 0;
  options.share_choice = [&](const nn::Chooser&) {
    ++choices;
    return std::string("engine 8\n\nengine 8\nengine 8\n");
  };
  const auto made = plan(rig, options);
  rig.run({made.get()}, 2);
  rig.run({made.get()}, 1);
  EXPECT_EQ(choices, 1) << "once a plan, though a short batch is planned when it comes";
  EXPECT_THAT(fake_.executed, testing::Each(8));

  fake_.executed.clear();
  options.share_choice = [](const nn::Chooser&) { return std::string("of another version of cuDNN"); };
  rig.run({plan(rig, options).get()}, 2);
  EXPECT_THAT(fake_.executed, testing::Each(7)) << "the first of its own order";
}

/// With the tensors of each pass's graph and no others, which the fake would refuse.
TEST_F(CudnnConv2d, MeasuresTheEnginesOfEveryPass) {
  fake_.mode_a = {{.index = 7, .notes = {}, .knobs = {}}, {.index = 8, .notes = {}, .knobs = {}}};
  nn::CudaBackendOptions options;
  options.autotune = true;
  for (const bool fuses : {true, false}) {
    fake_.fuses = fuses;
    fake_.executed.clear();
    PlanRig rig(layer_nodes(kConvolutions[0], {2, 5, 5, 1}, true, DType::f16));
    EXPECT_NE(plan(rig, options), nullptr);
    EXPECT_GT(std::ranges::count(fake_.executed, 7), 0);
    EXPECT_EQ(std::ranges::count(fake_.executed, 7), std::ranges::count(fake_.executed, 8));
  }
}

TEST_F(CudnnConv2d, PrefersDeterministicEngines) {
  const FakeEngine random{.index = 7, .notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, .knobs = {}};
  fake_.mode_a = {random};
  fake_.fallback = {{.index = 8, .notes = {}, .knobs = {}}};
  PlanRig rig(layer_nodes(kConvolutions[0], {2, 5, 5, 1}, true, DType::f16));
  nn::CudaBackendOptions options;
  rig.run({plan(rig, options).get()}, 2);
  EXPECT_THAT(fake_.executed, testing::Each(8)) << "though cuDNN would rather take the other";
  fake_.executed.clear();
  fake_.fallback.clear();
  rig.run({plan(rig, options).get()}, 2);
  EXPECT_THAT(fake_.executed, testing::Each(7));
  options.reproducible = true;
  EXPECT_EQ(plan(rig, options), nullptr);
}

TEST_F(CudnnConv2d, PlansOnlyRequestedGradients) {
  const auto engines = [&](nn::Backward backward) {
    std::vector<nn::NodeSpec> nodes = layer_nodes(kConvolutions[0], {2, 5, 5, 1}, false, DType::f32);
    nodes.front().backward = backward;
    PlanRig rig(nodes);
    fake_.graphs.clear();
    EXPECT_NE(plan(rig), nullptr);
    return fake_.graphs;
  };
  EXPECT_THAT(engines(nn::Backward::all), testing::ElementsAre("forward_bias f32", "dgrad f32", "wgrad f32 dw f32"));
  EXPECT_THAT(engines(nn::Backward::parameters), testing::ElementsAre("forward_bias f32", "wgrad f32 dw f32"));
  EXPECT_THAT(engines(nn::Backward::none), testing::ElementsAre("forward_bias f32"));
}

TEST_F(CudnnConv2d, AsksForNoBiasWhereThereIsNone) {
  PlanRig rig(layer_nodes(nn::Conv2d{.in_channels = 1, .out_channels = 3, .kernel = 3, .bias = false}, {2, 5, 5, 1},
                          false, DType::f32));
  ASSERT_NE(plan(rig), nullptr);
  EXPECT_THAT(fake_.graphs, testing::ElementsAre("forward f32", "dgrad f32", "wgrad f32 dw f32"));
}

/// By the name of the library, what it cannot compute is an error, also without a bias and in groups.
TEST_F(CudnnConv2d, IsAnErrorWithoutAnEngineIfNamed) {
  fake_.mode_a.emplace();
  kernels::HostDevice device;
  const auto cudnn = std::make_shared<nn::Cudnn>(fake_.api(), device, nn::CudaBackendOptions{});
  nn::CudaBackendOptions options;
  for (const nn::Conv2d& convolution : kConvolutions) {
    const auto nodes = layer_nodes(convolution, {2, 6, 5, convolution.in_channels}, false, DType::f32);
    options.conv = "cudnn";
    nn::CudaBackend named(kernels::kernel_set(), device, options, {.cudnn = cudnn, .cublas = nullptr});
    EXPECT_THROW(named.plan(nodes), InvalidArgument);
    options.conv = "auto";
    nn::CudaBackend automatic(kernels::kernel_set(), device, options, {.cudnn = cudnn, .cublas = nullptr});
    EXPECT_THAT(automatic.plan(nodes)->description(),
                testing::StartsWith(convolution.groups > 1 ? "grouped_conv2d/" : "conv2d/"));
  }
}

/// In f32 also where our fused kernel would take the pooling along: that has no variant on tensor cores.
TEST_F(CudnnConv2d, IsChosenForF32ByTheBackend) {
  kernels::HostDevice device;
  std::vector<nn::NodeSpec> nodes = layer_nodes(kConvolutions[0], {2, 6, 6, 1}, true, DType::f32);
  const nn::Shape input = nodes.back().output;
  nodes.push_back({nn::MaxPool2d{}, input, nn::output_of(nn::MaxPool2d{}, input).shape, DType::f32});
  const auto cudnn = std::make_shared<nn::Cudnn>(fake_.api(), device, nn::CudaBackendOptions{});
  nn::CudaBackend backend(kernels::kernel_set(), device, {}, {.cudnn = cudnn, .cublas = nullptr});
  EXPECT_EQ(backend.plan(nodes)->description(), "cudnn");
  for (nn::NodeSpec& node : nodes) node.dtype = DType::f16;
  EXPECT_THAT(backend.plan(nodes)->description(), testing::StartsWith("conv_relu_pool/"));
}

}  // namespace
}  // namespace gradring::tests
