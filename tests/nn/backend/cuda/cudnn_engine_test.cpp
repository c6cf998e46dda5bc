// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cudnn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/host/host_device.h"
#include "tests/nn/backend/cuda/fake_cudnn.h"

namespace gradring::tests {
namespace {

using kernels::DType;
using nn::ConvPass;
using testing::ElementsAre;
using testing::HasSubstr;

/// The seed model's second convolution, and one with everything odd.
constexpr kernels::conv2d::Geometry kGeometries[] = {
    {.batch = 64,
     .in_height = 13,
     .in_width = 13,
     .in_channels = 32,
     .out_channels = 64,
     .kernel_height = 3,
     .kernel_width = 3},
    {.batch = 3,
     .in_height = 9,
     .in_width = 7,
     .in_channels = 1,
     .out_channels = 5,
     .kernel_height = 3,
     .kernel_width = 3,
     .stride = 2,
     .padding = 1},
};

std::vector<std::string> names(const std::vector<nn::CudnnEngineConfig>& configs) {
  std::vector<std::string> all;
  for (const auto& config : configs) all.push_back(config.name);
  return all;
}

class CudnnEngines : public testing::Test {
 protected:
  std::vector<nn::CudnnEngineConfig> configs() {
    return nn::engine_configs(api_, nn::make_graph(api_, nullptr, {.geometry = kGeometries[0], .dtype = DType::f16}));
  }
  /// The names of the engines that keep to `rules`.
  std::vector<std::string> made(const nn::CudnnEngineRules& rules) {
    std::vector<std::string> all;
    for (const auto& config : configs())
      if (const auto engine = nn::make_engine(api_, nullptr, config, rules)) all.push_back(engine->name);
    return all;
  }

  FakeCudnn fake_;
  const nn::CudnnApi api_ = fake_.api();
};

TEST_F(CudnnEngines, ComeInTheOrderOfTheHeuristicsAndOnce) {
  fake_.mode_a = {{.index = 3, .notes = {}, .knobs = {{CUDNN_KNOB_TYPE_TILE_SIZE, 5}, {CUDNN_KNOB_TYPE_STAGES, 2}}}};
  fake_.mode_b = {{.index = 3, .notes = {}, .knobs = {{CUDNN_KNOB_TYPE_TILE_SIZE, 6}, {CUDNN_KNOB_TYPE_STAGES, 2}}},
                  {.index = 1, .notes = {}, .knobs = {}}};
  fake_.fallback = {{.index = 1, .notes = {}, .knobs = {}}, {.index = 0, .notes = {}, .knobs = {}}};
  EXPECT_THAT(names(configs()),
              ElementsAre("engine 3 knobs 2=5 14=2", "engine 3 knobs 2=6 14=2", "engine 1", "engine 0"));
}

TEST_F(CudnnEngines, KeepToTheRules) {
  fake_.mode_a = {{.index = 0, .notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, .knobs = {}},
                  {.index = 1, .notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, .knobs = {}},
                  {.index = 2, .notes = {}, .workspace_bytes = 100, .knobs = {}},
                  {.index = 3, .notes = {}, .compiles = false, .knobs = {}},
                  {.index = 4, .notes = {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}, .knobs = {}},
                  {.index = 5, .notes = {}, .knobs = {}},
                  {.index = 6, .notes = {CUDNN_NUMERICAL_NOTE_FFT}, .knobs = {}},
                  {.index = 7, .notes = {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4}, .knobs = {}}};
  EXPECT_THAT(made({.most_workspace_bytes = 100}), ElementsAre("engine 1", "engine 2", "engine 5", "engine 0"));
  EXPECT_THAT(made({.reproducible = true}), ElementsAre("engine 1", "engine 5"));
  EXPECT_THAT(made({.exact_products = true}), ElementsAre("engine 5", "engine 0"));
}

TEST_F(CudnnEngines, IncludeAllResultsOfAHeuristic) {
  constexpr std::int64_t kMany = 84;  // as many as the real one has named
  fake_.mode_a.emplace();
  for (std::int64_t index = 0; index < kMany; ++index)
    fake_.mode_a->push_back({.index = index, .notes = {}, .knobs = {}});
  EXPECT_EQ(configs().size(), static_cast<std::size_t>(kMany));
}

/// The fake offers what the record holds, so this tests what reads it. RealCudnn tests the record.
TEST_F(CudnnEngines, AreReadAsTheHeuristicOffersThem) {
  const kernels::conv2d::Geometry geometry = kGeometries[0];
  int engines = 0;
  for (const nn::ConvProblem& problem : problems_of(geometry)) {
    const std::string key = problem.key(), kind = key.substr(0, key.find(" x "));
    const Offer* const offer = fake_.record.find("sm_90", kind);
    ASSERT_NE(offer, nullptr) << kind;
    EXPECT_EQ(engines_of(nn::engine_configs(api_, nn::make_graph(api_, nullptr, problem))), offer->engines) << kind;
    engines += static_cast<int>(offer->engines.size());
  }
  EXPECT_GT(engines, 0);
}

TEST_F(CudnnEngines, TakeExactlyTheTensorsOfTheirGraph) {
  kernels::HostDevice device;
  nn::Cudnn cudnn(api_, device, {});
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  const kernels::Buffer memory = device.allocate(4096, kernels::MemoryKind::device);
  for (const ConvPass pass : {ConvPass::forward, ConvPass::forward_bias, ConvPass::dgrad, ConvPass::wgrad}) {
    const nn::ConvProblem problem{.pass = pass, .geometry = kGeometries[1]};
    SCOPED_TRACE(problem.key());
    const auto engine = cudnn.choose(problem, nn::kMostCudnnWorkspaceBytes, "");
    ASSERT_TRUE(engine.has_value());
    std::vector<nn::CudnnPointer> tensors;
    for (const nn::ConvTensor tensor : nn::tensors_of(pass)) tensors.push_back({tensor, memory.data()});
    EXPECT_NO_THROW(cudnn.enqueue(*stream, *engine, tensors, memory.data()));
    if (pass == ConvPass::forward_bias) continue;
    tensors.push_back({nn::kTensorB, memory.data()});
    EXPECT_THROW(cudnn.enqueue(*stream, *engine, tensors, memory.data()), DeviceError);
  }
}

TEST_F(CudnnEngines, AreNoneForAGraphThatIsNotKnown) {
  fake_.fuses = false;
  const auto graph =
      nn::make_graph(api_, nullptr, {.pass = ConvPass::forward_bias, .geometry = kGeometries[0], .dtype = DType::f16});
  EXPECT_TRUE(nn::engine_configs(api_, graph).empty());
}

TEST(CudnnCheck, NamesTheCallItsWordsAndItsPlace) {
  FakeCudnn fake;
  const nn::CudnnApi api = fake.api();
  try {
    nn::cudnn_check(api, CUDNN_STATUS_BAD_PARAM, "cudnnBackendExecute");
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cudnnBackendExecute failed: CUDNN_STATUS_FAKED, the fake's last words ["));
    EXPECT_THAT(error.what(), HasSubstr("cudnn_engine_test.cpp:"));
  }
}

TEST(ConvProblem, HasAKeyOfAllThatDecides) {
  nn::ConvProblem problem{.pass = ConvPass::wgrad, .geometry = kGeometries[1], .dtype = DType::f16};
  EXPECT_EQ(problem.key(), "wgrad f16 dw f32 x 3 9 7 1 w 5 3 3 stride 2 padding 1");
  problem.pass = ConvPass::forward_bias;
  EXPECT_EQ(problem.key(), "forward_bias f16 x 3 9 7 1 w 5 3 3 stride 2 padding 1");
}

/// The library itself checks tensors, operations and graphs, and needs no GPU for that.
TEST(CudnnGraphs, AreAcceptedByTheRealLibrary) {
  nn::CudnnApi api;
  try {
    api = nn::CudnnApi::load();
  } catch (const DeviceError& error) {
    GTEST_SKIP() << error.what();
  }
  for (const auto& geometry : kGeometries)
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
      for (const ConvPass pass : {ConvPass::forward, ConvPass::forward_bias, ConvPass::dgrad, ConvPass::wgrad}) {
        const nn::ConvProblem problem{.pass = pass, .geometry = geometry, .dtype = dtype};
        EXPECT_NO_THROW(nn::make_graph(api, nullptr, problem)) << problem.key();
      }
}

}  // namespace
}  // namespace gradring::tests
