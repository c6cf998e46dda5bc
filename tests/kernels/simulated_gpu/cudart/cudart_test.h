// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "kernels/simulated_gpu/cudart/error_text.h"
#include "kernels/simulated_gpu/cudart/runtime.h"
#include "kernels/simulated_gpu/cudart/simulated_gpu.h"

/// What the module exports.
extern "C" const gradring::simulated_gpu::SimulatedGpu* gradring_simulated_gpu();

namespace gradring::tests {

using simulated_gpu::SimulationOptions;

/// Longer than any test: work runs only if a call asks for it.
constexpr std::chrono::hours kForever(1);

/// A fresh runtime for each test, and calls of it that must succeed. Correct calls are silent: a test that plants no
/// misuse, by expect_fault, must leave no fault.
class Cudart : public testing::Test {
 protected:
  void SetUp() override { restart({}); }
  void TearDown() override {
    for (const std::string& fault : simulated_gpu::runtime().faults.texts())
      if (!expects_faults_) ADD_FAILURE() << "not expected: " << fault;
    simulated_gpu::restart({});  // joins the threads
  }

  static void restart(SimulationOptions options) {
    options.hold = kForever;
    simulated_gpu::restart(options);
  }

  /// `text` is part of what was reported.
  void expect_fault(const std::string& text) {
    expects_faults_ = true;
    EXPECT_THAT(simulated_gpu::runtime().faults.texts(), testing::Contains(testing::HasSubstr(text)));
  }

  static void ok(cudaError_t result) { ASSERT_EQ(result, cudaSuccess) << simulated_gpu::error_name(result); }

  static cudaStream_t make_stream() {
    cudaStream_t stream = nullptr;
    ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
  }
  static cudaEvent_t make_event(unsigned flags = cudaEventDisableTiming) {
    cudaEvent_t event = nullptr;
    ok(cudaEventCreateWithFlags(&event, flags));
    return event;
  }
  static cudaMemPool_t make_pool(int device = 0) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {.type = cudaMemLocationTypeDevice, .id = device};
    cudaMemPool_t pool = nullptr;
    ok(cudaMemPoolCreate(&pool, &properties));
    return pool;
  }
  /// Of the device; other streams may use it at once.
  static std::uint32_t* allocate(std::size_t elements, cudaStream_t stream) {
    void* data = nullptr;
    ok(cudaMallocFromPoolAsync(&data, elements * sizeof(std::uint32_t), make_pool(), stream));
    finish(stream);
    return static_cast<std::uint32_t*>(data);
  }
  static std::uint32_t* pinned(std::size_t elements) {
    void* data = nullptr;
    ok(cudaHostAlloc(&data, elements * sizeof(std::uint32_t), cudaHostAllocPortable));
    return static_cast<std::uint32_t*>(data);
  }

  /// Polls, as programs do.
  static cudaError_t wait(cudaStream_t stream) {
    for (;;) {
      const cudaError_t result = cudaStreamQuery(stream);
      if (result != cudaErrorNotReady) return result;
      std::this_thread::yield();
    }
  }
  static void finish(cudaStream_t stream) { ok(wait(stream)); }

  bool expects_faults_ = false;
};

}  // namespace gradring::tests
