// SPDX-License-Identifier: Apache-2.0
// The backend's plans by the real cuDNN, which needs no GPU to make them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "kernels/runtime/cuda/cuda_device.h"
#include "nn/backend/cuda/cudnn.h"
#include "tests/nn/backend/cuda/cudnn_plan_table.h"
#include "tests/nn/backend/cuda/cudnn_record.h"
#include "tests/nn/backend/cuda/deviceless_plan.h"
#include "tests/nn/backend/cuda/model_convolutions.h"
#include "tests/nn/backend/cuda/recorded_texts.h"

namespace gradring::tests {
namespace {

using kernels::DType;
using nn::ProgramMode;
using testing::AnyOf;
using testing::Each;
using testing::Not;

constexpr std::int64_t kSamples = 60000;  // MNIST's, which no batch below divides

void expect_rules(const DevicelessCudnn::Executed& engine, DType dtype, std::size_t workspace_bytes) {
  SCOPED_TRACE(testing::Message() << "engine " << engine.engine);
  EXPECT_THAT(engine.notes,
              Each(Not(AnyOf(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_WINOGRAD,
                             CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
                             CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13, CUDNN_NUMERICAL_NOTE_FFT,
                             CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION))));
  if (dtype == DType::f32) {
    EXPECT_THAT(engine.notes,
                Each(Not(AnyOf(CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS))));
  }
  EXPECT_GE(engine.workspace_bytes, 0);
  EXPECT_LE(static_cast<std::size_t>(engine.workspace_bytes), workspace_bytes);
}

std::vector<std::int64_t> indices(const DevicelessPlan::Engines& engines) {
  std::vector<std::int64_t> all;
  for (const auto& engine : engines.all()) all.push_back(engine.engine);
  return all;
}

/// The rules hold for every convolution of one model, in one type, on one GPU.
class CudnnPlans : public testing::TestWithParam<std::tuple<int, DType, std::string_view>> {
 protected:
  void SetUp() override {
    if (const auto why = DevicelessCudnn::missing()) GTEST_SKIP() << *why;
    cudnn_.emplace(std::get<0>(GetParam()) == 80 ? a100() : h100());
  }
  DType dtype() const { return std::get<1>(GetParam()); }
  std::vector<std::vector<nn::NodeSpec>> convolutions(std::int64_t batch, ProgramMode mode) const {
    return convolutions_of(std::get<2>(GetParam()), batch, mode, dtype());
  }

  std::optional<DevicelessCudnn> cudnn_;
};

INSTANTIATE_TEST_SUITE_P(Of, CudnnPlans,
                         testing::Combine(testing::Values(80, 90), testing::Values(DType::f32, DType::f16, DType::bf16),
                                          testing::ValuesIn(models_for_cudnn())),
                         [](const auto& of) {
                           std::string name = "sm_" + std::to_string(std::get<0>(of.param)) + "_" +
                                              std::string(kernels::name_of(std::get<1>(of.param))) + "_" +
                                              std::string(std::get<2>(of.param));
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(CudnnPlans, ObeyEngineRules) {
  for (const std::int64_t batch : {128, 2048})
    for (const auto& nodes : convolutions(batch, ProgramMode::training)) {
      SCOPED_TRACE(testing::Message() << nodes.front().name << ", planned for " << batch);
      DevicelessPlan plan(*cudnn_, nodes, {});
      ASSERT_TRUE(plan.made());
      EXPECT_LE(plan.workspace_bytes(), nn::kMostCudnnWorkspaceBytes + (std::size_t{1} << 20)) << "with dw in 16 bits";
      for (const std::int64_t samples : {batch, kSamples % batch, std::int64_t{1}}) {
        SCOPED_TRACE(testing::Message() << samples << " samples");
        const DevicelessPlan::Engines engines = plan.run(samples);
        EXPECT_EQ(engines.backward.size(), nodes.front().backward == nn::Backward::all ? 2u : 1u);
        for (const auto& engine : engines.all()) expect_rules(engine, dtype(), plan.workspace_bytes());
      }
    }
}

TEST_P(CudnnPlans, UseTheSameEnginesIfReproducible) {
  constexpr std::int64_t kBatch = 512;
  for (const auto& nodes : convolutions(kBatch, ProgramMode::training)) {
    DevicelessPlan free(*cudnn_, nodes, {}), reproducible(*cudnn_, nodes, {.reproducible = true});
    ASSERT_TRUE(free.made() && reproducible.made()) << nodes.front().name;
    EXPECT_EQ(indices(free.run(kBatch)), indices(reproducible.run(kBatch))) << nodes.front().name;
  }
}

TEST_P(CudnnPlans, OmitUnusedGradients) {
  constexpr std::int64_t kBatch = 1000;
  for (const auto& nodes : convolutions(kBatch, ProgramMode::evaluation)) {
    DevicelessPlan plan(*cudnn_, nodes, {});
    ASSERT_TRUE(plan.made()) << nodes.front().name;
    plan.run(kBatch);
  }
  EXPECT_EQ(cudnn_->dgrad_operations, 0);
  EXPECT_EQ(cudnn_->wgrad_operations, 0);
  const auto training = convolutions(kBatch, ProgramMode::training);
  ASSERT_TRUE(DevicelessPlan(*cudnn_, training.at(0), {}).made());
  EXPECT_EQ(cudnn_->dgrad_operations, 0) << "of the images";
  EXPECT_GT(cudnn_->wgrad_operations, 0);
  ASSERT_TRUE(DevicelessPlan(*cudnn_, training.at(1), {}).made());
  EXPECT_GT(cudnn_->dgrad_operations, 0);
}

class RealCudnn : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = DevicelessCudnn::missing()) GTEST_SKIP() << *why;
    version_ = cudnn_version_text(nn::CudnnApi::load().get_version());
  }
  std::string other_version(const std::string& file) const {
    return "libcudnn is " + version_ + ", " + file +
           " is of another version: scripts/cudnn_plans.sh --write makes it anew";
  }

  /// With a driver, cuDNN offers further engines for the same description.
  static bool has_gpu() { return kernels::cuda_device_count() > 0; }
  static constexpr const char* kOnlyWithoutGpu = "only without a GPU, where the record was made";

  std::string version_;
};

/// So what it says for other GPUs means something.
TEST_F(RealCudnn, HasNoBf16EngineForTuring) {
  const auto has_plan = [](const GpuModel& gpu) {
    DevicelessCudnn cudnn(gpu);
    const auto nodes = convolutions_of(nn::convnet({28, 28, 1}, 10), 64, ProgramMode::training, DType::bf16);
    return DevicelessPlan(cudnn, nodes.at(1), {}).made();
  };
  EXPECT_FALSE(has_plan(t4()));
  EXPECT_TRUE(has_plan(a100()));
}

TEST_F(RealCudnn, OffersWhatIsRecorded) {
  if (has_gpu()) GTEST_SKIP() << kOnlyWithoutGpu;
  const CudnnRecord record = CudnnRecord::read();
  if (record.version != version_) GTEST_SKIP() << other_version("cudnn_record.txt");
  EXPECT_EQ(CudnnRecord::ask().text(), record.text());
}

TEST_F(RealCudnn, PlansWhatIsDocumented) {
  if (has_gpu()) GTEST_SKIP() << kOnlyWithoutGpu;
  const std::string document = kCudnnDocument;
  if (document.find("**cuDNN**  " + version_ + ".") == std::string::npos)
    GTEST_SKIP() << other_version("docs/results/cudnn.md");
  EXPECT_EQ(cudnn_plan_document(), document);
}

}  // namespace
}  // namespace gradring::tests
