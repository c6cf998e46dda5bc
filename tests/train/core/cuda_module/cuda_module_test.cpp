// SPDX-License-Identifier: Apache-2.0
#include "train/core/cuda_module/cuda_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/base/error.h"
#include "kernels/runtime/stream.h"
#include "tests/support/built_file.h"
#include "tests/support/test_gpus.h"

namespace gradring::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <class Variant>
std::vector<std::string_view> names_of(std::span<const Variant> table) {
  std::vector<std::string_view> names;
  for (const Variant& variant : table) names.push_back(variant.name);
  return names;
}

/// What a DeviceError says, after the module was used; "" if none is thrown.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "";
}

class OpenedModule : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string_view(GRADRING_CUDA_MODULE).empty()) GTEST_SKIP() << "this build has no CUDA module";
  }
  const std::string file_ = tests::built_file(GRADRING_CUDA_MODULE);
};

TEST_F(OpenedModule, NeedsNoGpuAndHoldsTheSameTables) {
  const CudaModule& module = open_cuda_module(file_);
  const kernels::KernelSet cpu = kernels::kernel_set();
  EXPECT_EQ(names_of(module.kernels().conv2d), names_of(cpu.conv2d));
  EXPECT_EQ(names_of(module.kernels().adam), names_of(cpu.adam));
  EXPECT_EQ(names_of(module.kernels().gradient_statistics), names_of(cpu.gradient_statistics));
  ASSERT_FALSE(module.kernels().relu.empty());
  EXPECT_NE(module.kernels().relu.front().forward, cpu.relu.front().forward) << "the module must bring its own copy";
}

/// CUPTI needs a driver.
TEST_F(OpenedModule, RecordsActivitiesAndSaysWhyItCannotWithoutAGpu) {
  const CudaModule& module = open_cuda_module(file_);
  EXPECT_NE(module.make_ranges, nullptr);
  std::unique_ptr<kernels::DeviceTrace> trace;
  const std::string error = error_of([&] { trace = module.make_device_trace(); });
  if (module.device_count() == 0)
    EXPECT_THAT(error, HasSubstr("CUPTI"));
  else
    EXPECT_TRUE(trace || !error.empty());
}

TEST_F(OpenedModule, SaysWhyThereIsNoSuchDevice) {
  int count = -1;
  const std::string error = error_of([&] {
    const CudaModule& module = open_cuda_module(file_);
    count = module.device_count();
    module.make_device(count);
  });
  EXPECT_GE(count, 0);
  EXPECT_THAT(error, count == 0 ? HasSubstr("no CUDA device: ") : HasSubstr("no device cuda:"));
}

class ModuleWithGpus : public testing::Test {
 protected:
  void SetUp() override {
    if (!gpus_.module) GTEST_SKIP() << gpus_.why_not;
  }
  const tests::TestGpus gpus_ = tests::open_test_gpus({GRADRING_CUDA_MODULE, GRADRING_SIMULATED_GPU_MODULE});
};

TEST_F(ModuleWithGpus, MakesEveryDeviceThatItCounts) {
  for (int index = 0; index < gpus_.module->device_count(); ++index)
    EXPECT_EQ(gpus_.module->make_device(index)->id(), (kernels::DeviceId{kernels::DeviceKind::cuda, index}));
}

TEST_F(ModuleWithGpus, TellsWhatALaunchTakesOfAGpu) {
  const CudaModule& module = *gpus_.module;
  const auto device = module.make_device(0);
  const auto stream = device->make_stream(kernels::StreamMode::asynchronous);
  constexpr std::size_t kElements = 1001;
  const kernels::Buffer y = device->allocate(kElements * sizeof(float));
  const kernels::LaunchLog log(*stream);
  module.kernels().fill.front().run(*stream,
                                    {.dtype = kernels::DType::f32, .y = y.data(), .elements = kElements, .value = 1});
  stream->synchronize(Deadline::after(std::chrono::seconds(30)));
  ASSERT_EQ(log.launches().size(), 1u);
  const kernels::LaunchReport& launch = log.launches().front();
  EXPECT_EQ(launch.kernel, "fill_flat_kernel<unsigned int>");
  EXPECT_EQ(launch.threads, 256u);
  ASSERT_TRUE(launch.resources.has_value());
  EXPECT_GT(launch.resources->registers, 0);
  EXPECT_GT(launch.resources->resident_warps, 0);
  EXPECT_LE(launch.resources->resident_warps, launch.resources->most_warps);
}

TEST(CudaModule, SaysWhatToDoWhereThereIsNone) {
  EXPECT_THAT(error_of([] { open_cuda_module("/nowhere/libgradring_cuda.so"); }),
              AllOf(HasSubstr("cannot open the module /nowhere/libgradring_cuda.so"), HasSubstr("build or install")));
}

TEST(CudaModule, RejectsALibraryWithoutTheEntry) {
  const std::string file = tests::built_file(GRADRING_NO_MODULE);
  EXPECT_THAT(error_of([&] { open_cuda_module(file); }), AllOf(HasSubstr(file), HasSubstr("is not a CUDA module")));
}

TEST(CudaModule, RejectsAnotherVersion) {
  const std::string file = tests::built_file(GRADRING_OTHER_MODULE);
  EXPECT_THAT(error_of([&] { open_cuda_module(file); }),
              AllOf(HasSubstr(file), HasSubstr("build or install both together")));
}

}  // namespace
}  // namespace gradring::train
