// SPDX-License-Identifier: Apache-2.0
// Devices, current devices, contexts and errors.
#include "tests/kernels/simulated_gpu/cudart/cudart_test.h"

#include <cstdlib>

#include "kernels/base/error.h"

namespace gradring::tests {
namespace {

using simulated_gpu::configure;
using testing::AllOf;
using testing::HasSubstr;
using testing::StrEq;

class Devices : public Cudart {};

TEST_F(Devices, HaveTheLimitsOfTheirCards) {
  struct Row {
    const char* card;
    const char* name;
    int major, processors, shared_of_block, shared_of_multiprocessor, kilohertz;
  };
  for (const Row& row : {Row{"a100", "simulated NVIDIA A100-SXM4-80GB", 8, 108, 166912, 167936, 1410000},
                         Row{"t4", "simulated NVIDIA T4", 7, 40, 65536, 65536, 1590000},
                         Row{"rtx4090", "simulated NVIDIA GeForce RTX 4090", 8, 128, 101376, 102400, 2520000},
                         Row{"h100", "simulated NVIDIA H100 80GB HBM3", 9, 132, 232448, 233472, 1980000}}) {
    restart({.card = row.card, .devices = 3});
    int count = 0;
    ok(cudaGetDeviceCount(&count));
    EXPECT_EQ(count, 3);
    cudaDeviceProp properties{};
    ok(cudaGetDeviceProperties(&properties, 2));
    EXPECT_THAT(properties.name, StrEq(row.name));
    EXPECT_EQ(properties.major, row.major);
    EXPECT_EQ(properties.multiProcessorCount, row.processors);
    EXPECT_EQ(properties.sharedMemPerBlockOptin, static_cast<std::size_t>(row.shared_of_block));
    EXPECT_EQ(properties.sharedMemPerMultiprocessor, static_cast<std::size_t>(row.shared_of_multiprocessor));
    int value = 0;
    ok(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 2));
    EXPECT_EQ(value, row.shared_of_block);
    ok(cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, 2));
    EXPECT_EQ(value, row.kilohertz);
    char bus[16];
    ok(cudaDeviceGetPCIBusId(bus, sizeof bus, 2));
    EXPECT_THAT(bus, StrEq("0000:02:00.0"));
  }
}

TEST_F(Devices, RejectLimitsThatNoCardHas) {
  restart({.is_strict = false});
  for (const auto& [limit, most] : {std::pair(cudaLimitStackSize, std::size_t{512} << 10),
                                    std::pair(cudaLimitMaxL2FetchGranularity, std::size_t{128}),
                                    std::pair(cudaLimitMallocHeapSize, std::size_t{1} << 30)}) {
    ok(cudaDeviceSetLimit(limit, most));
    EXPECT_EQ(cudaDeviceSetLimit(limit, SIZE_MAX), cudaErrorInvalidValue);
    std::size_t value = 0;
    ok(cudaDeviceGetLimit(&value, limit));
    EXPECT_EQ(value, most);
  }
  expect_fault("limit 0 is 18446744073709551615; expected at most 524288");
}

TEST_F(Devices, AreThoseThatTheEnvironmentShows) {
  const auto buses_with = [](const char* visible) {
    ::setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    restart({.devices = 4});
    std::vector<int> buses;
    for (int index = 0, count = 0; cudaGetDeviceCount(&count) == cudaSuccess && index < count; ++index) {
      cudaDeviceProp properties{};
      ok(cudaGetDeviceProperties(&properties, index));
      buses.push_back(properties.pciBusID);
    }
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    return buses;
  };
  EXPECT_THAT(buses_with("3,1"), testing::ElementsAre(3, 1));
  EXPECT_THAT(buses_with("2,4,1"), testing::ElementsAre(2)) << "the list ends at a number that no GPU has";
  EXPECT_THAT(buses_with(""), testing::IsEmpty());
  int count = -1;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
}

TEST_F(Devices, RejectNumbersThatNoneHas) {
  restart({.devices = 2});
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  int value = 0;
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 2), cudaErrorInvalidDevice);
  expect_fault("cudaSetDevice: device 2 of 2 simulated ones (cudaErrorInvalidDevice)");
}

TEST_F(Devices, AreCurrentForOneThread) {
  ok(cudaSetDevice(3));
  int here = -1, there = -1;
  ok(cudaGetDevice(&here));
  std::thread([&] { cudaGetDevice(&there); }).join();
  EXPECT_EQ(here, 3);
  EXPECT_EQ(there, 0) << "a new thread begins with device 0";
}

TEST_F(Devices, ReportAContextThatAnotherDevicesObjectOpens) {
  ok(cudaSetDevice(1));
  const cudaEvent_t event = make_event();
  std::thread([&] { ok(cudaEventDestroy(event)); }).join();  // device 0 is current there
  expect_fault("cudaEventDestroy: for an object of cuda:1, opens a context on cuda:0");
}

TEST_F(Devices, ReportAContextOfAThreadThatSelectedNoDevice) {
  ok(cudaSetDevice(1));
  std::thread([] { pinned(1); }).join();
  expect_fault("cudaHostAlloc: opens a context on cuda:0 besides that on cuda:1");
}

TEST_F(Devices, MayAllBeUsedByOneProcess) {
  for (int device = 0; device < 2; ++device) {
    ok(cudaSetDevice(device));
    make_stream();
  }
  std::thread([] {
    ok(cudaSetDevice(1));
    make_event();
  }).join();
}

TEST_F(Devices, KeepTheLastErrorOfAThread) {
  EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
  const cudaStream_t stream = make_stream();
  void* data = nullptr;
  ok(cudaMallocFromPoolAsync(&data, 4, make_pool(), stream));
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady) << "which is no error";
  std::thread([] { EXPECT_EQ(cudaGetLastError(), cudaSuccess); }).join();
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  expect_fault("device 99");
}

TEST_F(Devices, NamesAndTextsOfErrorsAreNvidias) {
  EXPECT_THAT(cudaGetErrorName(cudaErrorStreamCaptureIsolation), StrEq("cudaErrorStreamCaptureIsolation"));
  EXPECT_THAT(cudaGetErrorString(cudaErrorInvalidValue), StrEq("invalid argument"));
}

TEST_F(Devices, OptionsAreChecked) {
  const auto message_of = [](const SimulationOptions& options) {
    try {
      configure(options);
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message_of({.card = "v100"}), AllOf(HasSubstr("'v100'"), HasSubstr("rtx4090, h100")));
  EXPECT_THAT(message_of({.devices = 0}), HasSubstr("1 to 64"));
}

}  // namespace
}  // namespace gradring::tests
