// SPDX-License-Identifier: Apache-2.0
// By a timer that says what the test wants: which of several plans of a layer is used.
#include "nn/backend/cuda/plan_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <limits>

#include "nn/backend/cuda/cuda_backend.h"
#include "tests/nn/backend/cuda/plan_rig.h"
#include "tests/nn/backend/cuda/tables_of_a_gpu.h"
#include "tests/support/each_stream.h"
#include "tests/support/temp_folder.h"

namespace gradring::tests {
namespace {

using kernels::DType;

/// In the order in which they are measured.
constexpr const char* kPlansOfAConvolution[] = {"conv_relu_pool/wgmma", "conv_relu_pool/mma", "conv_relu_pool/direct",
                                                "conv2d/wgmma",         "conv2d/mma",         "conv2d/wmma",
                                                "conv2d/direct"};
constexpr int kPlans = std::size(kPlansOfAConvolution);

class PlanChoice : public testing::Test {
 protected:
  PlanChoice() {
    options_.autotune = true;
    options_.time_call = [this](kernels::Device&, kernels::Stream& stream, const std::function<void()>& call) {
      call();  // on memory as the plans ask for
      finish(stream);
      return measured_++ == fastest_ ? 1e-6 : 2e-6;
    };
  }

  nn::CudaBackend backend() { return nn::CudaBackend(tables_.set(), device_, options_, {}); }
  std::string choice(nn::Backend& of, std::vector<nn::NodeSpec> nodes = pooled_convolution(DType::f16)) {
    for (nn::NodeSpec& node : nodes) node.name = "conv1";
    return of.plan(nodes)->description();
  }
  std::string choice() {
    nn::CudaBackend once = backend();
    return choice(once);
  }

  const TablesOfAGpu tables_;
  kernels::HostDevice device_;
  nn::CudaBackendOptions options_;
  int measured_ = 0;
  int fastest_ = 0;  // of the measurements
};

TEST_F(PlanChoice, TakesTheFastest) {
  for (int i = 0; i < kPlans; ++i) {
    fastest_ = i;
    measured_ = 0;
    EXPECT_EQ(choice(), kPlansOfAConvolution[i]);
    EXPECT_EQ(measured_, kPlans);
  }
}

TEST_F(PlanChoice, TakesTheFirstOfEquals) {
  fastest_ = -1;
  EXPECT_EQ(choice(), kPlansOfAConvolution[0]);
}

TEST_F(PlanChoice, LeavesOutWhatCannotBeMeasured) {
  options_.time_call = [this](kernels::Device&, kernels::Stream&, const std::function<void()>&) {
    return measured_++ < 2 ? std::numeric_limits<double>::infinity() : 1.0;
  };
  EXPECT_EQ(choice(), kPlansOfAConvolution[2]);
}

TEST_F(PlanChoice, LeavesOutWhatFindsNoMemory) {
  options_.time_call = [this](kernels::Device&, kernels::Stream&, const std::function<void()>&) {
    if (measured_++ < 1) throw DeviceError("out of memory");
    return 1.0;
  };
  EXPECT_EQ(choice(), kPlansOfAConvolution[1]);
}

TEST_F(PlanChoice, IsAmongVariantsOfProductsToo) {
  fastest_ = 1;
  nn::CudaBackend tuned = backend();
  PlanRig linear(layer_nodes(nn::Linear{.in_features = 16, .out_features = 8}, {4, 16}, false, DType::f32));
  const auto plan = tuned.plan(linear.nodes());
  EXPECT_GT(measured_, 1);
  EXPECT_NE(plan->description(), nn::CudaBackend(tables_.set(), device_, {}, {}).plan(linear.nodes())->description());
  expect_same(linear.run({plan.get()}, 4), linear.run_ours(4));
}

TEST_F(PlanChoice, MeasuresOnceForAMachineAndAProblem) {
  const TempFolder folder;
  options_.plan_cache = folder.path() / "plans.json";
  fastest_ = 3;
  EXPECT_EQ(choice(), kPlansOfAConvolution[3]);
  EXPECT_EQ(choice(), kPlansOfAConvolution[3]);
  EXPECT_EQ(measured_, kPlans) << "from the file";
  auto nodes = pooled_convolution(DType::f16);
  for (nn::NodeSpec& node : nodes) {
    node.input = node.input.with_batch(4);
    node.output = node.output.with_batch(4);
  }
  nn::CudaBackend other = backend();
  choice(other, nodes);
  EXPECT_EQ(measured_, 2 * kPlans) << "another batch";
}

TEST_F(PlanChoice, OfTrainingIsThatOfEvaluation) {
  fastest_ = 3;
  nn::CudaBackend tuned = backend();
  EXPECT_EQ(choice(tuned), kPlansOfAConvolution[3]);
  auto nodes = pooled_convolution(DType::f16);
  for (nn::NodeSpec& node : nodes) {
    node.input = node.input.with_batch(5);
    node.output = node.output.with_batch(5);
    node.backward = nn::Backward::none;
  }
  EXPECT_EQ(choice(tuned, nodes), kPlansOfAConvolution[3]);
  EXPECT_EQ(measured_, kPlans);
}

TEST_F(PlanChoice, IsKeptByAResumedRun) {
  fastest_ = 3;
  options_.resumed_choice = [](const std::string& layer) {
    return layer == "conv1" ? std::string(kPlansOfAConvolution[4]) : std::string();
  };
  EXPECT_EQ(choice(), kPlansOfAConvolution[4]);
  EXPECT_EQ(measured_, 0);
}

TEST_F(PlanChoice, OfALossIsKeptToo) {
  const std::vector<nn::NodeSpec> last =
      layer_nodes(nn::Linear{.in_features = 16, .out_features = 8}, {4, 16}, false, DType::f32);
  const auto nodes_of_loss = [&](const std::string& resumed) {
    options_.resumed_choice = [resumed](const std::string&) { return resumed; };
    return backend().plan_cross_entropy({.rows = 4, .classes = 8}, &last[0])->nodes();
  };
  EXPECT_EQ(nodes_of_loss(""), 1u);
  EXPECT_EQ(nodes_of_loss("linear_cross_entropy/another"), 1u);
  EXPECT_EQ(nodes_of_loss("gemm/tiled"), 0u);
}

TEST_F(PlanChoice, IsMeasuredWhereAResumedRunCannotKeepIt) {
  fastest_ = 3;
  options_.resumed_choice = [](const std::string&) { return std::string("conv2d/another"); };
  EXPECT_EQ(choice(), kPlansOfAConvolution[3]);
}

TEST_F(PlanChoice, IsThatOfTheRankThatChooses) {
  int shared = 0;
  options_.share_choice = [&shared](const nn::Chooser&) {
    ++shared;
    return std::string(kPlansOfAConvolution[5]);
  };
  EXPECT_EQ(choice(), kPlansOfAConvolution[5]);
  EXPECT_EQ(measured_, 0);
  EXPECT_EQ(shared, 1);
  options_.share_choice = [](const nn::Chooser&) { return std::string("cudnn"); };
  EXPECT_EQ(choice(), kPlansOfAConvolution[0]) << "which this rank lacks";
}

TEST_F(PlanChoice, IsRankedOnASimulatedGpuToo) {
  options_.has_libraries = false;
  fastest_ = 3;
  EXPECT_EQ(choice(), kPlansOfAConvolution[3]);
}

TEST_F(PlanChoice, MeasuresOnlyWhereAutotuneAsksAndNothingIsNamed) {
  options_.conv = "direct";
  EXPECT_EQ(choice(), "conv_relu_pool/direct");
  options_.conv = "auto";
  options_.autotune = false;
  EXPECT_EQ(choice(), kPlansOfAConvolution[0]);
  EXPECT_EQ(measured_, 0);
}

TEST_F(PlanChoice, MeasuresByTheDevicesClock) {
  options_.time_call = {};
  EXPECT_THAT(kPlansOfAConvolution, testing::Contains(choice()));
}

}  // namespace
}  // namespace gradring::tests
