// SPDX-License-Identifier: Apache-2.0
// What every device must do is in the tests beside this folder, which run on CUDA too; here is what CUDA's has of its
// own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdexcept>

#include "kernels/base/error.h"
#include "kernels/host/host_device.h"
#include "kernels/runtime/cuda/cuda_device.h"
#include "kernels/runtime/cuda/cuda_error.h"
#include "kernels/runtime/cuda/cuda_stream.h"

namespace gradring::kernels {
namespace {

TEST(CudaDevice, RejectsAMissingIndex) {
  const DeviceCount count = count_devices();
  for (const int index : {-1, count.devices}) {
    try {
      const CudaDevice device(index);
      FAIL() << "opened cuda:" << index;
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.what(), why_no_device(count, index));
    }
  }
}

class CudaDeviceOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why_not = why_no_device(count_devices(), 0);
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    device_ = std::make_unique<CudaDevice>(0);
  }
  std::unique_ptr<CudaDevice> device_;
};

TEST_F(CudaDeviceOnGpu, DescribesItself) {
  EXPECT_EQ(device_->id().to_string(), "cuda:0");
  EXPECT_THAT(device_->description(), testing::ContainsRegex(", [0-9]+\\.[0-9] GiB, sm_[0-9]+$"));
}

TEST_F(CudaDeviceOnGpu, OutOfMemoryReportsTheMissingBytes) {
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  try {
    const Buffer buffer = device_->allocate(total + (std::size_t{1} << 30), MemoryKind::device);
    FAIL() << "more than there is";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("are missing"), testing::HasSubstr("lower the batch")));
  }
}

TEST_F(CudaDeviceOnGpu, ReusesFreedMemory) {
  if (device_->description().starts_with("simulated")) GTEST_SKIP() << "a simulated GPU gives no address twice";
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const void* first = device_->allocate(kBytes, MemoryKind::device).data();
  EXPECT_EQ(device_->allocate(kBytes, MemoryKind::device).data(), first) << "the pool hands out the same block again";
}

TEST_F(CudaDeviceOnGpu, RecoversFromABadCall) {
  const auto stream = device_->make_stream(StreamMode::asynchronous);
  const Buffer buffer = device_->allocate(64, MemoryKind::device);
  EXPECT_THROW(stream->enqueue_copy(buffer.data(), buffer.data(), std::size_t{1} << 60), DeviceError);
  stream->enqueue_zero(buffer.data(), buffer.size());
  stream->synchronize(Deadline::after(std::chrono::seconds(30)));
}

TEST_F(CudaDeviceOnGpu, TwoDevicesInOneProcessFailIndependently) {
  CudaDevice other(0);
  const auto failing = device_->make_stream(StreamMode::asynchronous);
  const auto fine = other.make_stream(StreamMode::asynchronous);
  const Deadline soon = Deadline::after(std::chrono::seconds(30));
  failing->enqueue([] { throw DeviceError("host work failed"); });
  EXPECT_THROW(failing->synchronize(soon), DeviceError);
  fine->synchronize(soon);
}

TEST(CudaCheck, NamesTheCallTheErrorAndTheCaller) {
  const int line = __LINE__ + 2;
  try {
    cuda_check(cudaErrorIllegalAddress, "cudaMemcpyAsync");
    FAIL() << "an error went by";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("cudaMemcpyAsync failed"),
                               testing::HasSubstr("cudaErrorIllegalAddress, an illegal memory access was encountered"),
                               testing::HasSubstr("cuda_test.cpp:" + std::to_string(line))));
  }
}

TEST(CudaCheck, AcceptsSuccess) { EXPECT_NO_THROW(cuda_check(cudaSuccess, "cudaMemcpyAsync")); }

TEST(CudaCheck, ClearsTheRuntimesLastError) {
  if (const std::string why_not = why_no_device(count_devices(), 0); !why_not.empty()) GTEST_SKIP() << why_not;
  EXPECT_THROW(cuda_check(cudaFuncSetAttribute(nullptr, cudaFuncAttributeMaxDynamicSharedMemorySize, 0), "a bad call"),
               DeviceError);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kDriver = 13000;
constexpr int kRuntime = 13000;

TEST(WhyNoDevice, IsEmptyIfThereIsOne) {
  EXPECT_EQ(why_no_device({cudaSuccess, 1, kDriver, kRuntime}, 0), "");
  EXPECT_EQ(why_no_device({cudaSuccess, 8, kDriver, kRuntime}, 7), "");
}

TEST(WhyNoDevice, NoDriver) {
  EXPECT_THAT(why_no_device({cudaErrorInsufficientDriver, 0, 0, kRuntime}, 0),
              AllOf(StartsWith("no CUDA device: "), HasSubstr("driver is not installed")));
  EXPECT_THAT(why_no_device({cudaErrorNoDevice, 0, 0, kRuntime}, 0), HasSubstr("driver is not installed"));
}

TEST(WhyNoDevice, OldDriver) {
  EXPECT_THAT(
      why_no_device({cudaErrorInsufficientDriver, 0, 12040, kRuntime}, 0),
      AllOf(StartsWith("no CUDA device: "), HasSubstr("supports CUDA 12.4, this build needs 13.0: update the driver")));
}

TEST(WhyNoDevice, NoGpu) {
  for (const cudaError_t result : {cudaErrorNoDevice, cudaSuccess})
    EXPECT_THAT(why_no_device({result, 0, 12080, kRuntime}, 0),
                AllOf(StartsWith("no CUDA device: "), HasSubstr("CUDA 12.8"), HasSubstr("CUDA_VISIBLE_DEVICES")));
}

TEST(WhyNoDevice, OtherErrorsByName) {
  EXPECT_THAT(why_no_device({cudaErrorSystemNotReady, 0, kDriver, kRuntime}, 0),
              AllOf(StartsWith("no CUDA device: "), HasSubstr("cudaErrorSystemNotReady"), HasSubstr("nvidia-smi")));
}

TEST(WhyNoDevice, MissingIndex) {
  EXPECT_THAT(why_no_device({cudaSuccess, 1, kDriver, kRuntime}, 1),
              AllOf(HasSubstr("no device cuda:1"), HasSubstr("sees 1 CUDA device, cuda:0;")));
  EXPECT_THAT(why_no_device({cudaSuccess, 4, kDriver, kRuntime}, 4),
              AllOf(HasSubstr("no device cuda:4"), HasSubstr("sees 4 CUDA devices, cuda:0 to cuda:3;")));
  EXPECT_NE(why_no_device({cudaSuccess, 4, kDriver, kRuntime}, -1), "");
}

TEST(CountDevices, CountsThisMachinesDevices) {
  const DeviceCount count = count_devices();
  EXPECT_GE(count.runtime_version, 12000);
  EXPECT_EQ(count.devices, cuda_device_count());
  EXPECT_EQ(why_no_device(count, 0).empty(), count.devices > 0);
}

TEST(DeviceFailure, RethrowsTheFirstEveryTime) {
  DeviceFailure failure;
  EXPECT_FALSE(failure.happened());
  EXPECT_NO_THROW(failure.rethrow());
  failure.keep(std::make_exception_ptr(DeviceError("the first")));
  failure.keep(std::make_exception_ptr(DeviceError("the second")));
  EXPECT_TRUE(failure.happened());
  for (int again = 0; again < 2; ++again) {
    try {
      failure.rethrow();
      FAIL() << "the error was lost";
    } catch (const DeviceError& error) {
      EXPECT_STREQ(error.what(), "the first");
    }
  }
}

TEST(EmptyGraph, CannotBeEnqueued) {
  HostDevice device;
  const auto stream = device.make_stream(StreamMode::in_place);
  Graph graph;
  EXPECT_THROW(graph.enqueue(*stream), InvalidArgument);
  graph.reset();
}

/// Two ints on the device, 0 and 7, and one pinned, through which the host looks at the first.
class GraphOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why_not = why_no_device(count_devices(), 0);
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    device_ = std::make_unique<CudaDevice>(0);
    stream_ = std::make_unique<CudaStream>(0, std::make_shared<DeviceFailure>());
    value_ = device_->allocate(sizeof(int), MemoryKind::device);
    seven_ = device_->allocate(sizeof(int), MemoryKind::device);
    host_ = device_->allocate(sizeof(int), MemoryKind::pinned);
    *host_.as<int>() = 7;
    stream_->enqueue_copy(seven_.data(), host_.data(), sizeof(int));
    stream_->enqueue_zero(value_.data(), sizeof(int));
    finish();
  }
  void TearDown() override {
    if (stream_) finish();
  }

  void finish() { stream_->synchronize(Deadline::after(std::chrono::seconds(30))); }
  void set_value_to_seven(Stream& stream) { stream.enqueue_copy(value_.data(), seven_.data(), sizeof(int)); }
  int value() {
    stream_->enqueue_copy(host_.data(), value_.data(), sizeof(int));
    finish();
    return *host_.as<int>();
  }

  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<CudaStream> stream_;
  Buffer value_, seven_, host_;
};

TEST_F(GraphOnGpu, CapturesWithoutRunningAndReplays) {
  Graph graph = Graph::capture(*stream_, [&] { set_value_to_seven(*stream_); });
  EXPECT_EQ(value(), 0);
  for (int round = 0; round < 3; ++round) {
    stream_->enqueue_zero(value_.data(), sizeof(int));
    graph.enqueue(*stream_);
    EXPECT_EQ(value(), 7);
  }
}

TEST_F(GraphOnGpu, CapturesJoinedStreams) {
  const auto side = device_->make_stream(StreamMode::asynchronous);
  const auto fork = device_->make_event();
  const auto join = device_->make_event();
  Graph graph = Graph::capture(*stream_, [&] {
    stream_->record(*fork);
    side->enqueue_wait(*fork);
    set_value_to_seven(*side);
    side->record(*join);
    stream_->enqueue_wait(*join);
  });
  EXPECT_EQ(value(), 0);
  graph.enqueue(*stream_);
  EXPECT_EQ(value(), 7);
}

TEST_F(GraphOnGpu, RejectsHostWorkAndWaitsAndLeavesTheStreamUsable) {
  EXPECT_THROW(Graph::capture(*stream_, [&] { stream_->enqueue([] {}); }), InvalidArgument);
  EXPECT_THROW(Graph::capture(*stream_, [&] { finish(); }), InvalidArgument);
  EXPECT_THROW(Graph::capture(*stream_, [] { throw std::runtime_error("half way"); }), std::runtime_error);
  set_value_to_seven(*stream_);
  EXPECT_EQ(value(), 7);
}

TEST_F(GraphOnGpu, CanBeDestroyedWhileItRuns) {
  Graph graph = Graph::capture(*stream_, [&] { set_value_to_seven(*stream_); });
  graph.enqueue(*stream_);
  graph.reset();
  EXPECT_EQ(value(), 7);
  EXPECT_THROW(graph.enqueue(*stream_), InvalidArgument);
}

TEST(HostWork, DropsWorkThatTheStreamRejects) {
  if (cuda_device_count() > 0) GTEST_SKIP() << "only without a GPU, which takes it";
  const auto held = std::make_shared<int>(1);
  HostWork work(std::make_shared<DeviceFailure>());
  EXPECT_THROW(work.enqueue([held] { ADD_FAILURE() << "ran"; }, nullptr), DeviceError);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(LaunchResources, RejectAnAddressThatIsNoKernel) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "without a GPU, CUDA rejects every address";
  const int no_kernel = 0;
  EXPECT_THROW(launch_resources(&no_kernel, 32, 0), DeviceError);
}

using testing::Not;

constexpr std::size_t kGiB = std::size_t{1} << 30;

TEST(Gibibytes, HaveOneDecimal) {
  EXPECT_EQ(gibibytes(0), "0.0 GiB");
  EXPECT_EQ(gibibytes(kGiB), "1.0 GiB");
  EXPECT_EQ(gibibytes(kGiB + kGiB / 2), "1.5 GiB");
  EXPECT_EQ(gibibytes(2 * kGiB - 1), "2.0 GiB");
  EXPECT_EQ(gibibytes(150 * kGiB), "150.0 GiB");
  EXPECT_EQ(gibibytes(std::size_t{1} << 60), "1073741824.0 GiB");
}

TEST(OutOfMemory, ReportsTheMissingBytesAndWhatToDo) {
  EXPECT_THAT(
      out_of_memory("cuda:1", 4 * kGiB, kGiB, 140 * kGiB),
      AllOf(HasSubstr("cuda:1 has no 4294967296 bytes (4.0 GiB)"), HasSubstr("1.0 GiB of its 140.0 GiB are free"),
            HasSubstr("3.0 GiB are missing"), HasSubstr("lower the batch size")));
}

TEST(OutOfMemory, ReportsFragmentation) {
  EXPECT_THAT(out_of_memory("cuda:0", 4 * kGiB, 5 * kGiB, 140 * kGiB),
              AllOf(HasSubstr("not in one piece"), Not(HasSubstr("missing"))));
}

}  // namespace
}  // namespace gradring::kernels
