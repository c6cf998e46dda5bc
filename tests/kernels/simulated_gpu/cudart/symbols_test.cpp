// SPDX-License-Identifier: Apache-2.0
// Variables of modules, and the streams that exist without being created.
#include <array>
#include <cstring>
#include <functional>

#include "kernels/simulated_gpu/cudart/device_functions.h"
#include "tests/kernels/simulated_gpu/cudart/cudart_test.h"
#include "tests/kernels/simulated_gpu/cudart/registered_kernels.h"

extern "C" char __cudaInitModule(void** binary);
extern "C" cudaError_t cudaMemcpyToSymbol_ptds(const void*, const void*, std::size_t, std::size_t, cudaMemcpyKind);
extern "C" cudaError_t cudaMemcpyFromSymbol_ptds(void*, const void*, std::size_t, std::size_t, cudaMemcpyKind);

namespace gradring::tests {
namespace {

using simulated_gpu::runtime;

/// to[0] = weights[1] + counter + *pointer, by way of each state space; counter becomes that.
constexpr const char* kModule = R"(
.version 8.0
.target sm_90
.address_size 64
.const .align 4 .u32 weights[3] = {10, 20, 30};
.global .align 4 .u32 counter = 7;
.global .align 8 .u64 pointer = generic(weights)+8;
.global .attribute(.managed) .align 4 .u32 shared_with_host = 4;
.global .align 4 .b8 unset[8];
.visible .entry sum(.param .u64 to) {
  .reg .u64 %rd<5>;
  .reg .u32 %r<9>;
  ld.param.u64 %rd1, [to];
  cvta.to.global.u64 %rd2, %rd1;
  ld.const.u32 %r1, [weights+4];
  ld.global.u32 %r2, [counter];
  ld.global.u64 %rd3, [pointer];
  ld.u32 %r3, [%rd3];
  ld.global.u32 %r7, [unset+4];
  add.u32 %r4, %r1, %r2;
  add.u32 %r5, %r4, %r3;
  add.u32 %r8, %r5, %r7;
  st.global.u32 [%rd2], %r8;
  mov.u64 %rd4, counter;
  st.global.u32 [%rd4], %r8;
  st.global.u32 [shared_with_host], %r8;
  ret;
}
)";

void* shared_with_host = nullptr;

class Symbols : public Cudart {
 protected:
  void SetUp() override {
    restart({.devices = 2, .is_strict = false});
    static const auto made = [] {
      RegisteredKernels kernels({{90, kModule}});
      kernels.managed_variable("shared_with_host", 4, &shared_with_host);
      return std::array{kernels.kernel("sum"), kernels.variable("weights", 12), kernels.variable("counter", 4),
                        static_cast<const void*>(kernels.binary())};
    }();
    sum_ = made[0];
    weights_ = made[1];
    counter_ = made[2];
    binary_ = static_cast<void**>(const_cast<void*>(made[3]));
  }

  static std::uint32_t* allocate_words(std::size_t count) {
    void* data = nullptr;
    ok(cudaMalloc(&data, count * sizeof(std::uint32_t)));
    return static_cast<std::uint32_t*>(data);
  }
  void launch_sum(std::uint32_t* to, cudaStream_t stream = nullptr) {
    void* arguments[] = {static_cast<void*>(&to)};
    ok(cudaLaunchKernel(sum_, {1}, {1}, arguments, 0, stream));
  }
  static std::uint32_t word_at(const std::uint32_t* data) {
    std::uint32_t word = 0;
    ok(cudaMemcpy(&word, data, sizeof word, cudaMemcpyDeviceToHost));
    return word;
  }
  std::uint32_t counter() const {
    std::uint32_t word = 0;
    ok(cudaMemcpyFromSymbol(&word, counter_, sizeof word, 0, cudaMemcpyDeviceToHost));
    return word;
  }

  const void* sum_ = nullptr;
  const void* weights_ = nullptr;
  const void* counter_ = nullptr;
  void** binary_ = nullptr;
};

TEST_F(Symbols, HaveInitialValuesAndKeepWhatKernelsWrite) {
  std::uint32_t* const data = allocate_words(1);
  launch_sum(data);
  EXPECT_EQ(word_at(data), 20 + 7 + 30);
  EXPECT_EQ(counter(), 57);
  launch_sum(data);
  EXPECT_EQ(word_at(data), 20 + 57 + 30);
}

TEST_F(Symbols, AreWrittenByTheHost) {
  std::uint32_t* const data = allocate_words(1);
  const std::uint32_t values[2] = {200, 300};
  ok(cudaMemcpyToSymbol(weights_, values, sizeof values, 4, cudaMemcpyHostToDevice));
  launch_sum(data);
  EXPECT_EQ(word_at(data), 200 + 7 + 300);
}

TEST_F(Symbols, HaveAnAddressAndASize) {
  void* address = nullptr;
  std::size_t bytes = 0;
  ok(cudaGetSymbolAddress(&address, counter_));
  ok(cudaGetSymbolSize(&bytes, weights_));
  EXPECT_EQ(bytes, 12);
  ok(cudaMemset(address, 1, 4));
  EXPECT_EQ(counter(), 0x01010101);
}

TEST_F(Symbols, AreOfEachDevice) {
  std::uint32_t* const data = allocate_words(1);
  launch_sum(data);
  EXPECT_EQ(counter(), 57);
  ok(cudaSetDevice(1));
  EXPECT_EQ(counter(), 7);
}

TEST_F(Symbols, ShareManagedVariablesWithTheHost) {
  ASSERT_EQ(__cudaInitModule(binary_), 1);
  auto* const word = static_cast<std::uint32_t*>(shared_with_host);
  EXPECT_EQ(*word, 4);
  std::uint32_t* const data = allocate_words(1);
  launch_sum(data);
  ok(cudaDeviceSynchronize());
  EXPECT_EQ(*word, 57);
}

/// As nvcc --default-stream per-thread calls them.
TEST_F(Symbols, AreCopiedInTheStreamOfTheThread) {
  const std::uint32_t value = 58;
  std::uint32_t copied = 0;
  ok(cudaMemcpyToSymbol_ptds(weights_, &value, 4, 8, cudaMemcpyHostToDevice));
  ok(cudaMemcpyFromSymbol_ptds(&copied, weights_, 4, 8, cudaMemcpyDeviceToHost));
  EXPECT_EQ(copied, 58u);
  EXPECT_EQ(cudaMemcpyFromSymbol_ptds(&copied, weights_, 4, 9, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  expect_fault("4 bytes, from 9 bytes into weights of 12 bytes");
}

TEST_F(Symbols, RejectCopiesBeyondTheirEnd) {
  const std::uint32_t value = 0;
  EXPECT_EQ(cudaMemcpyToSymbol(weights_, &value, 4, 12, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect_fault("4 bytes, from 12 bytes into weights of 12 bytes");
  EXPECT_EQ(cudaMemcpyToSymbol(&value, &value, 4, 0, cudaMemcpyHostToDevice), cudaErrorInvalidSymbol);
}

TEST_F(Symbols, StartAgainAfterAReset) {
  std::uint32_t* const data = allocate_words(1);
  launch_sum(data);
  ok(cudaFree(data));
  ok(cudaDeviceReset());
  EXPECT_EQ(counter(), 7);
}

class DefaultStream : public Symbols {
 protected:
  /// Whether the copy of a word that `first` sets is in order with a copy of it by `second`, whatever the seed.
  static bool is_ordered(const std::function<cudaStream_t()>& make_first,
                         const std::function<cudaStream_t()>& make_second) {
    for (const std::uint64_t seed : {0, 1, 2, 3, 4, 5, 6, 7}) {
      restart({.seed = seed, .is_strict = false});
      const cudaStream_t first = make_first(), second = make_second();
      std::uint32_t* const data = allocate_words(2);
      ok(cudaMemsetAsync(data, 1, 4, first));
      ok(cudaMemcpyAsync(data + 1, data, 4, cudaMemcpyDeviceToDevice, second));
      if (cudaDeviceSynchronize() != cudaSuccess) return false;
    }
    return true;
  }
  static cudaStream_t legacy() { return nullptr; }
  static cudaStream_t of_thread() { return cudaStreamPerThread; }
  static cudaStream_t blocking() {
    cudaStream_t stream = nullptr;
    ok(cudaStreamCreate(&stream));
    return stream;
  }
};

TEST_F(DefaultStream, IsOrderedWithBlockingStreams) {
  EXPECT_TRUE(is_ordered(legacy, blocking));
  EXPECT_TRUE(is_ordered(blocking, legacy));
  EXPECT_TRUE(is_ordered(legacy, of_thread));
  EXPECT_TRUE(is_ordered(of_thread, legacy));
}

TEST_F(DefaultStream, IsNotOrderedWithOthers) {
  EXPECT_FALSE(is_ordered(legacy, make_stream));
  expect_fault("race between streams");
  EXPECT_FALSE(is_ordered(make_stream, legacy));
  EXPECT_FALSE(is_ordered(blocking, of_thread));
}

/// A stream is destroyed with work that has not begun.
TEST_F(DefaultStream, IsBehindBlockingStreamsThatWereDestroyed) {
  for (const std::uint64_t seed : {0, 1, 2, 3, 4, 5, 6, 7}) {
    restart({.seed = seed, .is_strict = false});
    std::uint32_t* const data = allocate_words(3);
    for (int i = 0; i < 3; ++i) {
      const cudaStream_t stream = blocking();
      ok(cudaMemsetAsync(data + i, 1, 4, stream));
      ok(cudaStreamDestroy(stream));
      EXPECT_EQ(runtime().orphans.size(), 1u);
    }
    ok(cudaMemsetAsync(data, 2, 12, legacy()));
    ok(cudaDeviceSynchronize());
    EXPECT_EQ(word_at(data), 0x02020202);
    ok(cudaFree(data));
  }
}

TEST_F(DefaultStream, ForbidsCapturesOfBlockingStreams) {
  const cudaStream_t stream = blocking();
  ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  std::uint32_t* const data = allocate_words(1);
  EXPECT_EQ(cudaMemsetAsync(data, 0, 4, nullptr), cudaErrorStreamCaptureImplicit);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  expect_fault("the legacy default stream, while a blocking stream is captured");
}

TEST_F(DefaultStream, LeavesCapturesValidThatAQueryMeets) {
  const cudaStream_t stream = blocking();
  ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  cudaStreamCaptureStatus status{};
  EXPECT_EQ(cudaStreamIsCapturing(nullptr, &status), cudaErrorStreamCaptureImplicit);
  unsigned flags = 0;
  ok(cudaStreamGetFlags(nullptr, &flags));
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(stream, &graph));
  ok(cudaGraphDestroy(graph));
}

TEST_F(DefaultStream, CopiesRowsWithGaps) {
  void* data = nullptr;
  std::size_t pitch = 0;
  ok(cudaMallocPitch(&data, &pitch, 8, 3));
  EXPECT_EQ(pitch, 512);
  const std::uint32_t from[3][2] = {{1, 2}, {3, 4}, {5, 6}};
  ok(cudaMemcpy2D(data, pitch, from, 8, 8, 3, cudaMemcpyHostToDevice));
  std::uint32_t column[3] = {};
  ok(cudaMemcpy2D(column, 4, static_cast<char*>(data) + 4, pitch, 4, 3, cudaMemcpyDeviceToHost));
  EXPECT_THAT(column, testing::ElementsAre(2, 4, 6));
  EXPECT_EQ(cudaMemcpy2D(data, 4, from, 8, 8, 3, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
  expect_fault("rows of 8 bytes with a pitch of 4 bytes");
}

TEST_F(DefaultStream, ReachesPeersOnceAccessIsEnabled) {
  restart({.devices = 2, .is_strict = false});
  std::uint32_t* const data = allocate_words(1);
  ok(cudaSetDevice(1));
  int can = 0;
  ok(cudaDeviceCanAccessPeer(&can, 1, 0));
  EXPECT_EQ(can, 1);
  ok(cudaDeviceEnablePeerAccess(0, 0));
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
  launch_sum(data);
  EXPECT_EQ(word_at(data), 57);
}

TEST(Formatted, WritesWhatCudaWrites) {
  struct {
    std::int32_t small = -3;
    std::int32_t width = 6;
    double number = 2.5;
    std::uint64_t string = 99;
    std::int64_t wide = -(std::int64_t{1} << 40);
  } const arguments;
  int count = 0;
  const std::string text = simulated_gpu::formatted(
      "%d|%*.2f|%-5s|%lld|%%|%",
      [&](std::size_t offset, void* to, std::size_t bytes) {
        std::memcpy(to, reinterpret_cast<const char*>(&arguments) + offset, bytes);
      },
      [](std::uint64_t address) { return address == 99 ? "abc" : ""; }, count);
  EXPECT_EQ(text, "-3|  2.50|abc  |-1099511627776|%|%");
  EXPECT_EQ(count, 5);
}

}  // namespace
}  // namespace gradring::tests
