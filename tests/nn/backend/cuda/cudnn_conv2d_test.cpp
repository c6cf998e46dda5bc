// SPDX-License-Identifier: Apache-2.0
// Against a stand-in for cuDNN that computes what it is told, so that what is told is tested. No GPU has run the real one yet.
#include "nn/backend/cuda/cuda_libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST_F(CudnnConv2d, AgreesWhereGradientsOfWeightsMustBeConverted) {
  fake_.f32_dw = false;
  expect_agreement();
}

TEST_F(CudnnConv2d, TakesTheReluAlongWhereItFusesAndLeavesNoDescriptorBehind) {
  PlanRig rig(layer_nodes(kConvolutions[0], {2, 5, 5, 1}, true, DType::f16));
  {
    const auto cudnn = plan(rig);
    rig.run({cudnn.get()}, 2);
  }
  EXPECT_EQ(fake_.executed.size(), 3u) << "forward, wgrad, dgrad";
  EXPECT_EQ(fake_.live_descriptors, 0);
}

TEST_F(CudnnConv2d, IsNoneWithoutAnEngine) {
  fake_.mode_a.clear();
  PlanRig rig(layer_nodes(kConvolutions[0], {2, 5, 5, 1}, false, DType::f16));
  EXPECT_EQ(plan(rig), nullptr);
}

TEST_F(CudnnConv2d, StatesTheLargestWorkspaceAndRoomForAConversion) {
  fake_.mode_a.front().workspace_bytes = 1000;
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

TEST_F(CudnnConv2d, IsReproducibleIfAskedTo) {
  fake_.mode_a = {{.index = 7, .notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, .knobs = {}},
                  {.index = 8, .notes = {}, .knobs = {}}};
  PlanRig rig(layer_nodes(kConvolutions[0], {2, 5, 5, 1}, true, DType::f16));
  nn::CudaBackendOptions options;
  rig.run({plan(rig, options).get()}, 2);
  EXPECT_THAT(fake_.executed, testing::Each(7));
  fake_.executed.clear();
  options.reproducible = true;
  rig.run({plan(rig, options).get()}, 2);
  EXPECT_THAT(fake_.executed, testing::Each(8));
}

}  // namespace
}  // namespace gradring::tests
