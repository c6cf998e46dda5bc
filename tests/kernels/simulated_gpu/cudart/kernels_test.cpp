// SPDX-License-Identifier: Apache-2.0
// Kernels: which PTX is taken, launches and their limits; functions of the driver.
#include <cudaTypedefs.h>

#include "tests/kernels/simulated_gpu/cudart/launched_kernels.h"

namespace gradring::tests {
namespace {

using simulated_gpu::runtime;
using testing::AllOf;
using testing::HasSubstr;

TEST_F(Kernels, TakeTheirParametersWhenTheyAreLaunched) {
  std::uint32_t* const data = pinned(5);
  std::uint8_t small = 200;
  std::uint64_t wide = 0x123456789abcdef0;
  std::array<std::uint32_t, 3> block = {1, 2, 3};
  void* to = data;
  ok(launch(store_, config(stream_), {static_cast<void*>(&to), &small, &wide, block.data()}));
  small = 0;
  wide = 0;
  block = {};
  finish(stream_);
  EXPECT_EQ(data[0], 200u);
  EXPECT_EQ(data[2], 0x9abcdef0u);
  EXPECT_EQ(data[3], 0x12345678u);
  EXPECT_EQ(data[4], 3u);
}

TEST_F(Kernels, InGraphsKeepTheParametersOfTheCapture) {
  std::uint32_t* const data = pinned(2);
  ok(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  ok(launch_add_one(data + 1, data));
  ok(launch_add_one(data, data + 1));
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(stream_, &graph));
  cudaGraphExec_t executable = nullptr;
  ok(cudaGraphInstantiate(&executable, graph, 0));
  for (int launch = 0; launch < 3; ++launch) ok(cudaGraphLaunch(executable, stream_));
  finish(stream_);
  EXPECT_EQ(data[0], 6u);
}

TEST_F(Kernels, AreLaunchedOnTheCurrentDevice) {
  ok(cudaSetDevice(1));
  EXPECT_EQ(launch_bounded({1}, {1}, 0), cudaErrorInvalidResourceHandle);
  expect_fault("cudaLaunchKernelExC: a stream of cuda:0 while cuda:1 is current");
}

TEST_F(Kernels, HaveLimitsOfExtents) {
  ok(launch_bounded({0x7fffffff, 1, 1}, {64}, 0));
  for (const auto& [grid, block] : std::vector<std::pair<dim3, dim3>>{{{0, 1, 1}, {1}},
                                                                      {{1, 65536, 1}, {1}},
                                                                      {{1, 1, 65536}, {1}},
                                                                      {{1}, {0, 1, 1}},
                                                                      {{1}, {1025, 1, 1}},
                                                                      {{1}, {1, 1, 65}},
                                                                      {{1}, {32, 33, 1}}})
    EXPECT_EQ(launch_bounded(grid, block, 0), cudaErrorInvalidConfiguration)
        << grid.x << " " << grid.y << " " << grid.z << ", " << block.x << " " << block.y << " " << block.z;
  expect_fault("bounded: a block of 1056 threads, expected at most 1024 (cudaErrorInvalidConfiguration)");
  EXPECT_EQ(launch_bounded({1}, {65}, 0), cudaErrorInvalidValue);
  expect_fault("a block of 65 threads, but the kernel's launch bounds are 64");
}

TEST_F(Kernels, HaveTheSharedMemoryThatTheyAskFor) {
  constexpr std::size_t kWithoutAsking = 32 * 1024;  // and 16 KB that are static
  ok(launch_bounded({1}, {1}, kWithoutAsking));
  EXPECT_EQ(launch_bounded({1}, {1}, kWithoutAsking + 1), cudaErrorInvalidValue);
  expect_fault("bounded: 32769 bytes of dynamic shared memory, but blocks of the kernel may have 32768");
  ok(cudaFuncSetAttribute(bounded_, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
  ok(launch_bounded({1}, {1}, 100000));
  EXPECT_EQ(launch_bounded({1}, {1}, 100001), cudaErrorInvalidValue);
  constexpr int kMost = 227 * 1024 - 16 * 1024;
  ok(cudaFuncSetAttribute(bounded_, cudaFuncAttributeMaxDynamicSharedMemorySize, kMost));
  EXPECT_EQ(cudaFuncSetAttribute(bounded_, cudaFuncAttributeMaxDynamicSharedMemorySize, kMost + 1),
            cudaErrorInvalidValue);
  ok(cudaSetDevice(1));
  EXPECT_EQ(launch(bounded_, config(make_stream(), {1}, {1}, kWithoutAsking + 1)), cudaErrorInvalidValue)
      << "another device was not asked";
}

TEST_F(Kernels, TellTheirAttributes) {
  cudaFuncAttributes attributes{};
  ok(cudaFuncGetAttributes(&attributes, bounded_));
  EXPECT_EQ(attributes.sharedSizeBytes, 16384u);
  EXPECT_EQ(attributes.maxThreadsPerBlock, 64);
  EXPECT_EQ(attributes.maxDynamicSharedSizeBytes, 32768);
  EXPECT_EQ(attributes.ptxVersion, 90);
  EXPECT_EQ(attributes.numRegs, 0) << "not known";
}

TEST_F(Kernels, TellHowManyBlocksAreResident) {
  const auto blocks = [&](int threads, std::size_t shared) {
    int found = -1;
    ok(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&found, bounded_, threads, shared));
    return found;
  };
  EXPECT_EQ(blocks(64, 0), 13) << "228 KB / (16 KB + 1 KB)";
  EXPECT_EQ(blocks(33, 40 * 1024), 4) << "228 KB / (16 KB + 40 KB + 1 KB)";
  EXPECT_EQ(blocks(65, 0), 0) << "above the launch bounds";
  int found = -1;
  ok(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&found, add_one_, 32, 0));
  EXPECT_EQ(found, 32) << "blocks of a multiprocessor";
  ok(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&found, add_one_, 1000, 0));
  EXPECT_EQ(found, 2) << "of 1024 threads";
}

TEST_F(Kernels, AreKnownByTheirAddress) {
  int nothing = 0;
  EXPECT_EQ(launch(&nothing, config(stream_)), cudaErrorInvalidDeviceFunction);
  expect_fault("cudaLaunchKernelExC: an address that is not of a kernel (cudaErrorInvalidDeviceFunction)");
}

TEST_F(Kernels, ComeFromTheNewestPtxForTheDevice) {
  const auto returning = [](const std::string& target, int value) {
    return module_for(target,
                      ".visible .entry value(.param .u64 to) {\n.reg .u64 %rd<3>;\n ld.param.u64 %rd1, [to];\n"
                      " cvta.to.global.u64 %rd2, %rd1;\n st.global.u32 [%rd2], " +
                          std::to_string(value) + ";\n ret;\n}\n");
  };
  RegisteredKernels both({{80, returning("sm_80", 80)}, {90, returning("sm_90", 90)}});
  RegisteredKernels newer({{90, returning("sm_90", 90)}});
  RegisteredKernels older({{80, returning("sm_80", 80)}});
  RegisteredKernels only_80a({{80, returning("sm_80a", 81)}});
  RegisteredKernels both_90({{90, returning("sm_90", 90)}, {90, returning("sm_90a", 91)}});
  RegisteredKernels both_90_turned({{90, returning("sm_90a", 91)}, {90, returning("sm_90", 90)}});
  const auto value_of = [&](RegisteredKernels& kernels, const char* card) {
    restart({.card = card});
    const cudaStream_t stream = make_stream();
    std::uint32_t* to = pinned(1);
    const cudaError_t result = launch(kernels.kernel("value"), config(stream), {static_cast<void*>(&to)});
    if (result != cudaSuccess) return -static_cast<int>(result);
    finish(stream);
    return static_cast<int>(*to);
  };
  EXPECT_EQ(value_of(both, "h100"), 90);
  EXPECT_EQ(value_of(both, "a100"), 80);
  EXPECT_EQ(value_of(both_90, "h100"), 91);
  EXPECT_EQ(value_of(both_90_turned, "h100"), 91);
  EXPECT_EQ(value_of(older, "h100"), 80);
  EXPECT_EQ(value_of(newer, "a100"), -cudaErrorNoKernelImageForDevice);
  expect_fault(
      "no PTX of value for compute capability 8.0, the program has that of 9.0: compile it with -gencode "
      "arch=compute_80,code=compute_80 (cudaErrorNoKernelImageForDevice)");
  EXPECT_EQ(value_of(only_80a, "a100"), 81);
  EXPECT_EQ(value_of(only_80a, "h100"), -cudaErrorNoKernelImageForDevice) << "it is for 8.0 alone";
}

TEST_F(Kernels, WithUnknownInstructionsAreNamed) {
  RegisteredKernels kernels({{90, module_for("sm_90", ".visible .entry odd() {\n frobnicate.u32;\n ret;\n}\n")}});
  EXPECT_EQ(launch(kernels.kernel("odd"), config(stream_)), cudaErrorNotSupported);
  expect_fault("frobnicate.u32");
}

class Driver : public Cudart {
 protected:
  static PFN_cuTensorMapEncodeTiled_v12000 encode() {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    ok(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
    EXPECT_EQ(found, cudaDriverEntryPointSuccess);
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
  }
  /// Of a matrix of 64 x 64 elements of 16 bits.
  static CUresult encode_matrix(void* address) {
    const std::array<cuuint64_t, 2> sizes = {64, 64};
    const std::array<cuuint64_t, 1> strides = {128};
    const std::array<cuuint32_t, 2> box = {64, 8}, ones = {1, 1};
    CUtensorMap map{};
    return encode()(&map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, address, sizes.data(), strides.data(), box.data(),
                    ones.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                    CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }
};

TEST_F(Driver, EncodesTensorMaps) {
  ok(cudaSetDevice(0));
  std::uint32_t* const data = pinned(2048);
  EXPECT_EQ(encode_matrix(data), CUDA_SUCCESS);
  EXPECT_EQ(encode_matrix(data + 1), CUDA_ERROR_INVALID_VALUE);
  expect_fault("cuTensorMapEncodeTiled: ");
}

TEST_F(Driver, WantsAContext) {
  std::uint32_t* const data = pinned(2048);
  std::thread([&] { EXPECT_EQ(encode_matrix(data), CUDA_ERROR_INVALID_CONTEXT); }).join();
  expect_fault("this thread has no context: call cudaSetDevice first");
}

TEST_F(Driver, SaysWhatItDoesNotHave) {
  void* function = this;
  cudaDriverEntryPointQueryResult found{};
  ok(cudaGetDriverEntryPointByVersion("cuFrobnicate", &function, 12000, cudaEnableDefault, &found));
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(found, cudaDriverEntryPointSymbolNotFound);
  ok(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 11080, cudaEnableDefault, &found));
  EXPECT_EQ(found, cudaDriverEntryPointVersionNotSufficent);
}

}  // namespace
}  // namespace gradring::tests
