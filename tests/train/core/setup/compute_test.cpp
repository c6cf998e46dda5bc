// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/compute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/base/error.h"
#include "kernels/host/host_device.h"
#include "tests/data/support/message_of.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using tests::message_of;

TEST(MakeCompute, TakesTheCoresOfThisMachineWithTheirKernels) {
  const Compute compute = make_compute({.device = "cpu"});
  EXPECT_EQ(compute.device->id().kind, kernels::DeviceKind::cpu);
  EXPECT_EQ(compute.backend->name(), "cpu");
  EXPECT_EQ(compute.kernels.adam.data(), kernels::kernel_set().adam.data());
  EXPECT_EQ(compute.module, nullptr);
  EXPECT_TRUE(compute.remarks.empty());
}

TEST(MakeCompute, AutoSaysWhyItTakesNoGpu) {
  const Compute compute = make_compute({});
  if (compute.device->id().kind == kernels::DeviceKind::cuda) GTEST_SKIP() << "there is a GPU";
  ASSERT_EQ(compute.remarks.size(), 1u);
  EXPECT_THAT(compute.remarks.front(), HasSubstr("no GPU is used: "));
}

TEST(MakeCompute, KnowsTheBackendsByName) {
  EXPECT_EQ(make_compute({.device = "cpu", .backend = BackendKind::reference}).backend->name(), "reference");
  EXPECT_EQ(make_compute({.backend = BackendKind::reference}).device->id().kind, kernels::DeviceKind::cpu);
  EXPECT_EQ(make_compute({.backend = BackendKind::cpu}).backend->name(), "cpu");
  EXPECT_THROW(parse_choice<BackendKind>("backend", "abacus"), UsageError);
}

TEST(MakeCompute, StreamsOfACpuOutwaitCollectives) {
  TrainConfig config;
  config.device = "cpu";
  config.timeout = std::chrono::minutes(30);
  const Compute compute = make_compute(compute_spec(config, 1, 0));
  EXPECT_EQ(dynamic_cast<const kernels::HostDevice&>(*compute.device).patience(),
            kernels::HostDevice::kPatience + config.timeout);
}

TEST(MakeCompute, SaysWhatIsMissingForAGpu) {
  for (const ComputeSpec& spec : {ComputeSpec{.device = "cuda:99"}, ComputeSpec{.device = "cuda", .local_rank = 99},
                                  ComputeSpec{.backend = BackendKind::cuda, .local_rank = 99}})
    EXPECT_THAT(message_of<EnvironmentError>([&] { make_compute(spec); }),
                AllOf(HasSubstr("cuda:99"), HasSubstr("use --device cpu")));
  EXPECT_THROW(make_compute({.device = "tpu"}), InvalidArgument);
}

TEST(MakeCompute, SaysWhatIsMissingForASimulatedGpu) {  // no module is beside this program
  EXPECT_THAT(message_of<EnvironmentError>([] { make_compute({.device = "cuda", .simulate_gpu = "h100"}); }),
              AllOf(HasSubstr("this build cannot simulate GPUs"), HasSubstr("GRADRING_CUDA=ON")));
}

TEST(MakeCompute, RejectsBackendsOfAnotherDevice) {
  EXPECT_THAT(message_of<UsageError>([] { make_compute({.device = "cpu", .backend = BackendKind::cuda}); }),
              HasSubstr("--backend cuda computes on a GPU"));
  EXPECT_THAT(message_of<UsageError>([] { make_compute({.device = "cuda:1", .backend = BackendKind::cpu}); }),
              HasSubstr("--backend cpu computes on the CPU, not on --device cuda:1"));
}

TEST(MakeCompute, RejectsNamesThatNobodyHas) {
  EXPECT_THAT(
      message_of<UsageError>([] { make_compute({.device = "cpu", .conv = "dirct"}); }),
      AllOf(HasSubstr("--conv: "), HasSubstr("Did you mean 'direct'?"), HasSubstr("native"), HasSubstr("onednn")));
  EXPECT_THAT(message_of<UsageError>([] { make_compute({.device = "cpu", .gemm = "cublas"}); }),
              AllOf(HasSubstr("--gemm: "), HasSubstr("strips")));
  EXPECT_THROW(make_compute({.device = "cpu", .backend = BackendKind::reference, .conv = "direct"}), UsageError);
}

}  // namespace
}  // namespace gradring::train
