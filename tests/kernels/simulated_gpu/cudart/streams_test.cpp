// SPDX-License-Identifier: Apache-2.0
// Streams, events, and functions of the host.
#include "tests/kernels/simulated_gpu/cudart/cudart_test.h"

#include <set>

#include "kernels/simulated_gpu/cudart/host_function.h"

namespace gradring::tests {
namespace {

class Streams : public Cudart {};

TEST_F(Streams, RunWorkAfterItWasEnqueued) {
  const cudaStream_t stream = make_stream();
  std::uint32_t* const data = pinned(1);
  ok(cudaMemsetAsync(data, 1, 4, stream));
  EXPECT_EQ(*data, 0u) << "a program that does not wait finds out";
  finish(stream);
  EXPECT_EQ(*data, 0x01010101u);
}

TEST_F(Streams, ReportAHostThatReadsTheTargetOfACopyTooEarly) {
  const cudaStream_t stream = make_stream();
  std::uint32_t* const to = pinned(2);
  ok(cudaMemcpyAsync(to, pinned(1), 4, cudaMemcpyDefault, stream));
  EXPECT_EQ(*to, 0u);
  EXPECT_EQ(wait(stream), cudaErrorIllegalAddress);
  expect_fault("cuda:0: the host uses 4 bytes at ");
  expect_fault("before cudaMemcpyAsync has written them");
}

/// A page may hold several results.
TEST_F(Streams, LetAHostReadBesideTheTargetOfACopy) {
  const cudaStream_t stream = make_stream();
  std::uint32_t* const to = pinned(2);
  for (int round = 0; round < 2; ++round) {
    ok(cudaMemcpyAsync(to, pinned(1), 4, cudaMemcpyDefault, stream));
    finish(stream);
    ok(cudaMemcpyAsync(to + 1, pinned(1), 4, cudaMemcpyDefault, stream));
    EXPECT_EQ(*to, 0u);
  }
  make_event();  // any call
  EXPECT_EQ(to[1], 0u);
  expect_fault("the host uses 4 bytes at ");
}

TEST_F(Streams, ReportAHostThatUsesAPinnedSourceAgainTooEarly) {
  const cudaStream_t stream = make_stream();
  std::uint32_t* const from = pinned(1);
  std::uint32_t* const to = pinned(1);
  for (const std::uint32_t value : {1u, 2u}) {
    *from = value;
    ok(cudaMemcpyAsync(to, from, 4, cudaMemcpyDefault, stream));
    finish(stream);
    EXPECT_EQ(*to, value);
  }
  ok(cudaMemsetAsync(from, 0, 4, stream));  // work of the device may change it
  ok(cudaMemcpyAsync(to, from, 4, cudaMemcpyDefault, stream));
  finish(stream);
  *from = 3;
  ok(cudaMemcpyAsync(to, from, 4, cudaMemcpyDefault, stream));
  *from = 4;
  EXPECT_EQ(wait(stream), cudaErrorIllegalAddress);
  expect_fault("which the host changed after the call");
}

/// Two streams that use one place.
class OrderOfStreams : public Streams {
 protected:
  void SetUp() override {
    Streams::SetUp();
    data_ = allocate(64, first_ = make_stream());
    second_ = make_stream();
    event_ = make_event();
    ok(cudaMemsetAsync(data_, 0, 256, first_));
    finish(first_);
  }
  void expect_race(const char* one, const char* other) {
    EXPECT_EQ(wait(second_), cudaErrorLaunchFailure);
    expect_fault("race between streams or with the host: 4 bytes at ");
    expect_fault(one);
    expect_fault(other);
  }

  std::uint32_t* data_ = nullptr;
  cudaStream_t first_ = nullptr, second_ = nullptr;
  cudaEvent_t event_ = nullptr;
};

TEST_F(OrderOfStreams, IsMissingWithoutAnEvent) {
  ok(cudaMemsetAsync(data_, 1, 256, first_));
  ok(cudaMemcpyAsync(pinned(64), data_ + 32, 4, cudaMemcpyDefault, second_));
  (void)wait(first_);
  expect_race("by cudaMemsetAsync", "read by cudaMemcpyAsync");
}

TEST_F(OrderOfStreams, IsMissingIfTheEventIsRecordedTooEarly) {
  ok(cudaEventRecord(event_, first_));
  ok(cudaMemsetAsync(data_, 1, 256, first_));
  ok(cudaStreamWaitEvent(second_, event_));
  ok(cudaFreeAsync(data_, second_));
  (void)wait(first_);
  expect_race("written by cudaMemsetAsync", "written by cudaFreeAsync");
}

TEST_F(OrderOfStreams, IsMissingBesideAFunctionOfTheHost) {
  ok(cudaMemsetAsync(data_, 1, 256, first_));
  ok(cudaLaunchHostFunc(
      second_, [](void* data) { simulated_gpu::note_use("ncclSend", data, 4, false); }, data_));
  (void)wait(first_);
  expect_race("by cudaMemsetAsync", "read by ncclSend");
}

TEST_F(OrderOfStreams, IsMadeByEventsThroughOtherStreams) {
  ok(cudaMemsetAsync(data_, 1, 256, first_));
  ok(cudaEventRecord(event_, first_));
  const cudaStream_t between = make_stream();
  ok(cudaStreamWaitEvent(between, event_));
  ok(cudaEventRecord(event_, between));
  ok(cudaStreamWaitEvent(second_, event_));
  ok(cudaMemsetAsync(data_, 2, 256, second_));
  finish(second_);
}

TEST_F(OrderOfStreams, IsMadeByAHostThatWaits) {
  ok(cudaMemsetAsync(data_, 1, 256, first_));
  ok(cudaEventRecord(event_, first_));
  while (cudaEventQuery(event_) == cudaErrorNotReady) std::this_thread::yield();
  ok(cudaMemsetAsync(data_, 2, 256, second_));
  finish(second_);
}

TEST_F(OrderOfStreams, IsNotNeededForReadersAndOtherPlaces) {
  ok(cudaMemcpyAsync(pinned(64), data_, 256, cudaMemcpyDefault, first_));
  ok(cudaMemcpyAsync(pinned(64), data_, 128, cudaMemcpyDefault, second_));
  finish(first_);
  finish(second_);
  ok(cudaMemsetAsync(data_, 1, 128, first_));
  ok(cudaMemsetAsync(data_ + 32, 1, 128, second_));
  finish(first_);
  finish(second_);
}

/// Two streams that write one place, with and without an event between them.
std::set<std::uint32_t> last_values(bool waits) {
  std::set<std::uint32_t> values;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimulationOptions options{.seed = seed};
    options.checks_races = waits;  // else the second order would be a fault
    options.hold = kForever;
    simulated_gpu::restart(options);
    cudaStream_t first = nullptr, second = nullptr;
    cudaEvent_t event = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    void* place = nullptr;
    EXPECT_EQ(cudaHostAlloc(&place, 4, cudaHostAllocPortable), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(place, 1, 4, first), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event, first), cudaSuccess);
    if (waits) {
      EXPECT_EQ(cudaStreamWaitEvent(second, event), cudaSuccess);
    }
    EXPECT_EQ(cudaMemsetAsync(place, 2, 4, second), cudaSuccess);
    for (const cudaStream_t stream : {first, second})
      while (cudaStreamQuery(stream) == cudaErrorNotReady) std::this_thread::yield();
    values.insert(*static_cast<const std::uint32_t*>(place) & 0xff);
  }
  return values;
}

TEST_F(Streams, AreOrderedByEventsAlone) {
  EXPECT_EQ(last_values(true), (std::set<std::uint32_t>{2}));
  EXPECT_EQ(last_values(false), (std::set<std::uint32_t>{1, 2})) << "the missing wait must show with some seeds";
}

TEST_F(Streams, EventsMeanTheWorkBeforeTheirLastRecord) {
  const cudaStream_t stream = make_stream();
  const cudaEvent_t event = make_event();
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess) << "never recorded";
  std::uint32_t* const data = pinned(1);
  ok(cudaMemsetAsync(data, 0, 4, stream));
  ok(cudaEventRecord(event, stream));
  ok(cudaMemsetAsync(data, 0, 4, stream));
  while (cudaEventQuery(event) == cudaErrorNotReady) std::this_thread::yield();
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady) << "what came after the record is not waited for";
  finish(stream);
}

TEST_F(Streams, MeasureTimeByTheCountedClock) {
  const cudaStream_t stream = make_stream();
  const cudaEvent_t start = make_event(cudaEventDefault), stop = make_event(cudaEventDefault);
  std::uint32_t* const data = allocate(1 << 20, stream);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, stop), cudaErrorInvalidResourceHandle) << "never recorded";
  ok(cudaEventRecord(start, stream));
  ok(cudaMemsetAsync(data, 0, 4 << 20, stream));
  ok(cudaEventRecord(stop, stream));
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, stop), cudaErrorNotReady);
  finish(stream);
  ok(cudaEventElapsedTime(&milliseconds, start, stop));
  EXPECT_NEAR(milliseconds, 1e-3 + (4 << 20) / 3.35e12 * 1e3, 1e-5) << "1 us, and 4 MiB at 3.35 TB/s";
  expect_fault("cudaEventElapsedTime: an event that was never recorded");
}

TEST_F(Streams, EventsWithoutTimingHaveNone) {
  const cudaStream_t stream = make_stream();
  const cudaEvent_t event = make_event();
  ok(cudaEventRecord(event, stream));
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event, event), cudaErrorInvalidResourceHandle);
  expect_fault("an event without timing");
}

TEST_F(Streams, RecordEventsOfTheirOwnDeviceOnly) {
  const cudaEvent_t event = make_event();
  ok(cudaSetDevice(1));
  EXPECT_EQ(cudaEventRecord(event, make_stream()), cudaErrorInvalidResourceHandle);
  expect_fault("cudaEventRecord: an event of cuda:0 in a stream of cuda:1");
}

TEST_F(Streams, WaitForEventsOfOtherDevices) {
  std::uint32_t* const data = pinned(1);
  const cudaStream_t first = make_stream();
  const cudaEvent_t event = make_event();
  ok(cudaMemsetAsync(data, 1, 4, first));
  ok(cudaEventRecord(event, first));
  ok(cudaSetDevice(1));
  const cudaStream_t second = make_stream();
  ok(cudaStreamWaitEvent(second, event));
  ok(cudaMemsetAsync(data, 2, 4, second));
  finish(second);
  EXPECT_EQ(*data, 0x02020202u);
}

TEST_F(Streams, DestroyedHandlesAreKnown) {
  const cudaStream_t stream = make_stream();
  const cudaEvent_t event = make_event();
  ok(cudaStreamDestroy(stream));
  ok(cudaEventDestroy(event));
  make_stream();
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
  expect_fault("cudaStreamQuery: a stream that was destroyed");
  expect_fault("cudaEventDestroy: an event that was destroyed");
}

TEST_F(Streams, FinishTheirWorkAfterTheirDestruction) {
  const cudaStream_t stream = make_stream();
  const cudaEvent_t event = make_event();
  std::uint32_t* const data = pinned(1);
  ok(cudaMemsetAsync(data, 3, 4, stream));
  ok(cudaEventRecord(event, stream));
  ok(cudaStreamDestroy(stream));
  while (cudaEventQuery(event) == cudaErrorNotReady) std::this_thread::yield();
  EXPECT_EQ(*data, 0x03030303u);
}

TEST_F(Streams, TheDefaultStreamIsNotSimulated) {
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotSupported);
  expect_fault("the default stream, which is not simulated");
}

void note_thread(void* place) { *static_cast<std::thread::id*>(place) = std::this_thread::get_id(); }
void call_cuda(void* place) { *static_cast<cudaError_t*>(place) = cudaSetDevice(0); }

TEST_F(Streams, FunctionsOfTheHostRunInOrderOnAnotherThread) {
  const cudaStream_t stream = make_stream();
  std::thread::id thread = std::this_thread::get_id();
  ok(cudaLaunchHostFunc(stream, &note_thread, &thread));
  EXPECT_EQ(thread, std::this_thread::get_id()) << "not yet";
  finish(stream);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST_F(Streams, FunctionsOfTheHostMayUseNoBytesOfNoMemory) {
  const cudaStream_t stream = make_stream();
  ok(cudaLaunchHostFunc(
      stream, [](void* data) { simulated_gpu::note_use("ncclSend", data, 0, false); }, nullptr));
  finish(stream);
}

TEST_F(Streams, FunctionsOfTheHostMayNotCallCuda) {
  const cudaStream_t stream = make_stream();
  cudaError_t result = cudaSuccess;
  ok(cudaLaunchHostFunc(stream, &call_cuda, &result));
  finish(stream);
  EXPECT_EQ(result, cudaErrorNotPermitted);
  expect_fault("cudaSetDevice: a call by a function that cudaLaunchHostFunc enqueued");
}

}  // namespace
}  // namespace gradring::tests
