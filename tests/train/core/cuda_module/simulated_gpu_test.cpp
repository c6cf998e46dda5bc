// SPDX-License-Identifier: Apache-2.0
// libgradring_simulated_gpu.so as the program opens it: nvcc's code of our kernels, on GPUs that are not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "tests/support/built_file.h"
#include "train/core/cuda_module/cuda_module.h"

namespace gradring::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class SimulatedGpus : public testing::Test {
 protected:
  const std::string file_ = tests::built_file(GRADRING_SIMULATED_GPU_MODULE);
  const SimulatedModule opened_ = open_simulated_gpus(file_, {.card = "h100", .devices = 2, .threads = 2});

  static void finish(kernels::Stream& stream) { stream.synchronize(Deadline::after(std::chrono::minutes(1))); }
};

TEST_F(SimulatedGpus, AreAsManyAsWereAskedForAndSayThatTheyAreSimulated) {
  ASSERT_EQ(opened_.module.device_count(), 2);
  for (int index = 0; index < 2; ++index) {
    const auto device = opened_.module.make_device(index);
    EXPECT_EQ(device->id(), (kernels::DeviceId{kernels::DeviceKind::cuda, index}));
    EXPECT_EQ(device->description(), "simulated NVIDIA H100 80GB HBM3, 80.0 GiB, sm_90");
  }
  EXPECT_THROW(opened_.module.make_device(2), DeviceError);
  EXPECT_THAT(opened_.gpus.faults(), IsEmpty());
}

TEST_F(SimulatedGpus, ExecuteTheKernelsThatNvccCompiled) {
  const auto device = opened_.module.make_device(0);
  const auto stream = device->make_stream(kernels::StreamMode::asynchronous);
  constexpr std::size_t kElements = 1001;
  const kernels::Buffer y = device->allocate(kElements * sizeof(float));
  const kernels::Buffer host = device->allocate(y.size(), kernels::MemoryKind::pinned);
  opened_.module.kernels().fill.front().run(
      *stream, {.dtype = kernels::DType::f32, .y = y.data(), .elements = kElements, .value = 2.5});
  stream->enqueue_copy(host.data(), y.data(), y.size());
  finish(*stream);
  const auto* const values = host.as<float>();
  EXPECT_THAT(std::vector<float>(values, values + kElements), testing::Each(2.5f));
  EXPECT_THAT(opened_.gpus.faults(), IsEmpty());
}

TEST_F(SimulatedGpus, HaveNoneOfNvidiasLibraries) {
  const auto device = opened_.module.make_device(0);
  std::vector<std::string> remarks;
  nn::CudaBackendOptions options{.has_libraries = false,
                                 .say = [&remarks](const std::string& text) { remarks.push_back(text); }};
  opened_.module.make_backend(*device, options);
  EXPECT_THAT(remarks, IsEmpty());
  options.gemm = "cublas";
  EXPECT_THAT([&] { opened_.module.make_backend(*device, options); },
              testing::ThrowsMessage<InvalidArgument>(HasSubstr("--gemm cublas is not simulated")));
}

TEST_F(SimulatedGpus, AreRejectedWhereRealOnesAreExpected) {
  EXPECT_THAT([&] { open_real_gpus(file_); },
              testing::ThrowsMessage<DeviceError>(HasSubstr("is the module that simulates GPUs")));
}

/// The last test: the fault stays.
TEST_F(SimulatedGpus, NameTheFaultInTheErrorThatThePersonSees) {
  const auto device = opened_.module.make_device(1);
  const auto stream = device->make_stream(kernels::StreamMode::asynchronous);
  const kernels::Buffer y = device->allocate(100 * sizeof(float));
  opened_.module.kernels().fill.front().run(*stream,
                                            {.dtype = kernels::DType::f32, .y = y.data(), .elements = 101, .value = 1});
  try {
    finish(*stream);
    FAIL() << "a write behind the end of its block";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cudaErrorIllegalAddress"), HasSubstr("fill_flat_kernel"),
                                    HasSubstr("behind the end of a block of 400 bytes of GPU 1")));
  }
  EXPECT_EQ(opened_.gpus.faults().size(), 1u);
}

TEST(OpenSimulatedGpus, RejectsAModuleWithRealGpus) {
  const std::string file = tests::built_file(GRADRING_CUDA_MODULE);
  try {
    open_simulated_gpus(file, {});
    FAIL() << "opened";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(file), HasSubstr("simulates no GPU")));
  }
}

}  // namespace
}  // namespace gradring::train
