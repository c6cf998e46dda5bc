// SPDX-License-Identifier: Apache-2.0
// Memory in the order of streams, pinned memory, copies.
#include "tests/kernels/simulated_gpu/cudart/cudart_test.h"

#include <sys/resource.h>

#include <cstring>

namespace gradring::tests {
namespace {

using simulated_gpu::runtime;

class Memory : public Cudart {
 protected:
  static std::uint64_t attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
    std::uint64_t value = 0;
    ok(cudaMemPoolGetAttribute(pool, which, &value));
    return value;
  }
  static std::size_t free_bytes() {
    std::size_t free = 0, total = 0;
    ok(cudaMemGetInfo(&free, &total));
    return free;
  }
};

TEST_F(Memory, PoolsCountWhatTheyHoldAndKeep) {
  const cudaStream_t stream = make_stream();
  const cudaMemPool_t pool = make_pool();
  const std::size_t free_before = free_bytes();
  std::uint64_t keep_all = UINT64_MAX;
  ok(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_all));
  void* data = nullptr;
  ok(cudaMallocFromPoolAsync(&data, 1000, pool, stream));
  EXPECT_EQ(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 1000u);
  ok(cudaFreeAsync(data, stream));
  finish(stream);
  EXPECT_EQ(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 0u);
  EXPECT_EQ(attribute(pool, cudaMemPoolAttrReservedMemCurrent), 1000u) << "below the threshold";
  EXPECT_EQ(free_bytes(), free_before - 1000);
  ok(cudaMallocFromPoolAsync(&data, 600, pool, stream));
  EXPECT_EQ(attribute(pool, cudaMemPoolAttrReservedMemCurrent), 1000u) << "is used again";
}

TEST_F(Memory, OfACardEnds) {
  const cudaStream_t stream = make_stream();
  void* data = nullptr;
  EXPECT_EQ(cudaMallocFromPoolAsync(&data, std::size_t{81} << 30, make_pool(), stream), cudaErrorMemoryAllocation);
  EXPECT_EQ(data, nullptr);
}

/// Sizes whose products do not fit a size_t, or sums with what is taken already.
TEST_F(Memory, OfSizesThatOverflowIsRejected) {
  restart({.is_strict = false});
  constexpr std::size_t kHalf = std::size_t{1} << 63;
  void* data = nullptr;
  std::size_t pitch = 0;
  ok(cudaMalloc(&data, 4096));
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 4095, SIZE_MAX - 8191}) {
    EXPECT_EQ(cudaMalloc(&data, bytes), cudaErrorMemoryAllocation) << bytes;
    EXPECT_EQ(cudaHostAlloc(&data, bytes, 0), cudaErrorMemoryAllocation) << bytes;
    EXPECT_EQ(cudaMallocManaged(&data, bytes, cudaMemAttachGlobal), cudaErrorMemoryAllocation) << bytes;
    EXPECT_EQ(cudaMallocPitch(&data, &pitch, bytes, 1), cudaErrorMemoryAllocation) << bytes;
  }
  EXPECT_EQ(cudaMallocPitch(&data, &pitch, 1, kHalf), cudaErrorMemoryAllocation);
  cudaPitchedPtr pitched{};
  EXPECT_EQ(cudaMalloc3D(&pitched, {512, kHalf, 2}), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc3D(&pitched, {1, 1 << 30, kHalf}), cudaErrorMemoryAllocation);
  ok(cudaMalloc(&data, 4096));
  char host[64];
  EXPECT_EQ(cudaMemcpy2D(host, 32, data, kHalf, 32, 3, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset2D(data, kHalf, 0, 32, 3), cudaErrorInvalidValue);
  expect_fault("which are too many");
}

/// The system allows a process 65,530 parts of memory that differ.
TEST_F(Memory, MayHaveVeryManyBlocks) {
  restart({.is_strict = false});
  std::vector<void*> blocks(70'000);
  for (void*& block : blocks) ASSERT_EQ(cudaMalloc(&block, 4), cudaSuccess);
  ok(cudaMemset(blocks.back(), 0, 4));
  for (void* const block : blocks) ASSERT_EQ(cudaFree(block), cudaSuccess);
}

TEST_F(Memory, MayBeUsedBehindItsAllocation) {
  const cudaStream_t stream = make_stream();
  void* data = nullptr;
  ok(cudaMallocFromPoolAsync(&data, 64, make_pool(), stream));
  ok(cudaMemsetAsync(data, 0, 64, stream));
  ok(cudaFreeAsync(data, stream));
  finish(stream);
}

/// Whether a use in another stream is a fault, for each of 20 seeds.
template <class Body>
int faults_with_seeds(const Body& body) {
  int faults = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimulationOptions options{.seed = seed};
    options.hold = kForever;
    simulated_gpu::restart(options);
    body();
    faults += runtime().faults.texts().empty() ? 0 : 1;
  }
  return faults;
}

TEST_F(Memory, MayNotBeUsedBeforeItsAllocation) {
  const auto use_elsewhere = [](bool waits) {
    const cudaStream_t stream = make_stream(), other = make_stream();
    const cudaEvent_t event = make_event();
    void* data = nullptr;
    ok(cudaMallocFromPoolAsync(&data, 64, make_pool(), stream));
    ok(cudaEventRecord(event, stream));
    if (waits) ok(cudaStreamWaitEvent(other, event));
    ok(cudaMemsetAsync(data, 0, 64, other));
    wait(other);
  };
  EXPECT_EQ(faults_with_seeds([&] { use_elsewhere(true); }), 0);
  EXPECT_GT(faults_with_seeds([&] { use_elsewhere(false); }), 4);
  expects_faults_ = true;
}

TEST_F(Memory, MayNotBeUsedAfterItWasFreed) {
  const auto use_elsewhere = [](bool waits) {
    const cudaStream_t stream = make_stream(), other = make_stream();
    const cudaEvent_t event = make_event();
    std::uint32_t* const data = allocate(16, stream);
    ok(cudaMemsetAsync(data, 0, 64, other));
    ok(cudaEventRecord(event, other));
    if (waits) ok(cudaStreamWaitEvent(stream, event));
    ok(cudaFreeAsync(data, stream));
    wait(stream);
    wait(other);
  };
  EXPECT_EQ(faults_with_seeds([&] { use_elsewhere(true); }), 0);
  EXPECT_GT(faults_with_seeds([&] { use_elsewhere(false); }), 4);
  expects_faults_ = true;
}

TEST_F(Memory, UseAfterFreeNamesTheBlockAndFailsTheDevice) {
  const cudaStream_t stream = make_stream();
  std::uint32_t* const data = allocate(16, stream);
  ok(cudaFreeAsync(data, stream));
  ok(cudaMemsetAsync(data + 2, 0, 4, stream));
  EXPECT_EQ(wait(stream), cudaErrorIllegalAddress);
  expect_fault("cuda:0: cudaMemsetAsync writes 4 bytes at 0x");
  expect_fault("8 bytes into a block of 64 bytes of GPU 0 that was freed");
}

TEST_F(Memory, CopiesToPageableMemoryReturnTheirFault) {
  const cudaStream_t stream = make_stream();
  std::uint32_t* const data = allocate(1, stream);
  ok(cudaFreeAsync(data, stream));
  std::uint32_t copied = 0;
  EXPECT_EQ(cudaMemcpyAsync(&copied, data, sizeof copied, cudaMemcpyDefault, stream), cudaErrorIllegalAddress);
  expect_fault("that was freed");
}

/// The card has 80 GB, this process 16 GiB.
TEST_F(Memory, MissingOnTheHostFailsTheDevice) {
  const cudaStream_t stream = make_stream();
  const cudaMemPool_t pool = make_pool();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit less{.rlim_cur = rlim_t{16} << 30, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &less), 0);
  void* data = nullptr;
  EXPECT_EQ(cudaMallocFromPoolAsync(&data, std::size_t{32} << 30, pool, stream), cudaErrorMemoryAllocation);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  expect_fault("cuda:0: this host has no memory left for 34359738368 bytes");
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorMemoryAllocation);
}

TEST_F(Memory, IsFreedOnce) {
  const cudaStream_t stream = make_stream();
  std::uint32_t* const data = allocate(16, stream);
  ok(cudaFreeAsync(data, stream));
  EXPECT_EQ(cudaFreeAsync(data, stream), cudaErrorInvalidValue);
  expect_fault("which were freed before");
  EXPECT_EQ(cudaFreeAsync(pinned(1), stream), cudaErrorInvalidValue);
  expect_fault("not the begin of a block of a memory pool");
  std::uint32_t* const memory = pinned(1);
  ok(cudaFreeHost(memory));
  EXPECT_EQ(cudaFreeHost(memory), cudaErrorInvalidValue);
}

TEST_F(Memory, LeaksAreReportedAtTheEnd) {
  const cudaStream_t stream = make_stream();
  allocate(16, stream);
  pinned(1);
  const std::lock_guard lock(runtime().mutex);
  runtime().report_leaks();
  expect_fault("at the end of the process, not given back: 1 of cudaMallocFromPoolAsync");
  expect_fault("not given back: 1 of cudaHostAlloc");
  expect_fault("not given back: 1 of cudaStreamCreateWithFlags");
}

TEST_F(Memory, PinnedMemoryIsFreedBehindTheWorkThatUsesIt) {
  const cudaStream_t stream = make_stream();
  std::uint32_t* const from = pinned(1);
  std::uint32_t* const to = pinned(1);
  *from = 7;
  ok(cudaMemcpyAsync(to, from, 4, cudaMemcpyDefault, stream));
  ok(cudaFreeHost(from));
  EXPECT_EQ(*to, 7u);
}

TEST_F(Memory, CopiesOfPageableMemoryReadItBeforeTheCallReturns) {
  const cudaStream_t stream = make_stream();
  std::uint32_t* const data = allocate(1, stream);
  std::uint32_t from = 5, to = 0;
  ok(cudaMemcpyAsync(data, &from, 4, cudaMemcpyHostToDevice, stream));
  from = 6;
  ok(cudaMemcpyAsync(&to, data, 4, cudaMemcpyDeviceToHost, stream));
  EXPECT_EQ(to, 5u) << "and those to it are done then";
}

TEST_F(Memory, CopiesGoWhereTheirKindSays) {
  const cudaStream_t stream = make_stream();
  std::uint32_t* const data = allocate(1, stream);
  EXPECT_EQ(cudaMemcpyAsync(data, pinned(1), 4, cudaMemcpyDeviceToDevice, stream), cudaErrorInvalidValue);
  expect_fault("a source that is not where the kind of the copy says");
  EXPECT_EQ(cudaMemcpyAsync(nullptr, data, 4, cudaMemcpyDefault, stream), cudaErrorInvalidValue);
}

TEST_F(Memory, CopiesStayWithinTheirBlocks) {
  const cudaStream_t stream = make_stream();
  std::uint32_t* const data = allocate(16, stream);
  std::uint32_t* const host = pinned(32);
  EXPECT_EQ(cudaMemcpyAsync(data, host, 68, cudaMemcpyDefault, stream), cudaErrorInvalidValue);
  expect_fault("cudaMemcpyAsync: 68 bytes, from 0 bytes into a block of 64 bytes");
  EXPECT_EQ(cudaMemcpyAsync(host, data + 8, 40, cudaMemcpyDefault, stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(data + 15, 0, 5, stream), cudaErrorInvalidValue);
  finish(stream);  // it did not fail
}

TEST_F(Memory, CopiesDoNotOverlap) {
  const cudaStream_t stream = make_stream();
  std::uint32_t* const data = allocate(16, stream);
  ok(cudaMemcpyAsync(data, data + 1, 8, cudaMemcpyDefault, stream));
  EXPECT_EQ(wait(stream), cudaErrorIllegalAddress);
  expect_fault("cudaMemcpyAsync copies between overlapping ranges");
}

TEST_F(Memory, CopiesCarryWhatWasWritten) {
  const cudaStream_t stream = make_stream();
  std::uint32_t* const from = allocate(2, stream);
  std::uint32_t* const to = allocate(2, stream);
  ok(cudaMemsetAsync(from, 1, 4, stream));
  ok(cudaMemcpyAsync(to, from, 8, cudaMemcpyDefault, stream));
  finish(stream);
  const auto is_written = [](const std::uint32_t* at) {
    return runtime().memory.is_written(reinterpret_cast<std::uintptr_t>(at), 4);
  };
  EXPECT_TRUE(is_written(to));
  EXPECT_FALSE(is_written(to + 1)) << "its source was not";
  ok(cudaMemcpyAsync(to, pinned(2), 8, cudaMemcpyDefault, stream));
  finish(stream);
  EXPECT_TRUE(is_written(to + 1)) << "memory of the host may be written unseen";
}

TEST_F(Memory, OfTheHostIsNotCleared) {
  const cudaStream_t stream = make_stream();
  std::uint32_t value = 1;
  ok(cudaMemsetAsync(&value, 0, 4, stream));
  EXPECT_EQ(wait(stream), cudaErrorIllegalAddress);
  expect_fault("cudaMemsetAsync writes pageable memory of the host");
}

TEST_F(Memory, FailuresStayAndSayWhy) {
  const cudaStream_t stream = make_stream();
  std::uint32_t* const host = pinned(1);
  std::uint32_t* const data = allocate(1, stream);
  ok(cudaMemsetAsync(data + 1, 0, 4, stream));
  ok(cudaMemsetAsync(host, 1, 4, stream));
  EXPECT_EQ(wait(stream), cudaErrorIllegalAddress);
  EXPECT_EQ(*host, 0u) << "nothing is done after the failure";
  EXPECT_EQ(cudaMemsetAsync(host, 1, 4, stream), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress) << "is not cleared";
  EXPECT_THAT(
      cudaGetErrorString(cudaErrorIllegalAddress),
      testing::AllOf(testing::StartsWith("an illegal memory access was encountered; the simulated GPU found: cuda:0:"),
                     testing::HasSubstr("cudaMemsetAsync")));
  std::uint32_t of_nobody = 0;
  EXPECT_EQ(cudaFree(&of_nobody), cudaErrorIllegalAddress) << "which would be a misuse";
  EXPECT_EQ(runtime().faults.texts().size(), 1u) << "reported once";
  ok(cudaSetDevice(1));
  finish(make_stream());  // another device goes on
  expect_fault("cudaMemsetAsync writes 4 bytes");
}

}  // namespace
}  // namespace gradring::tests
