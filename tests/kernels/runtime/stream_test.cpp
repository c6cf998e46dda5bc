// SPDX-License-Identifier: Apache-2.0
// What must hold of streams and events, whatever the device.
#include "kernels/runtime/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "kernels/runtime/error.h"
#include "kernels/runtime/host/host_device.h"
#include "tests/kernels/runtime/each_device.h"

namespace gradring::kernels {
namespace {

using namespace std::chrono_literals;

Deadline soon() { return Deadline::after(30s); }

/// What a DeviceError says, or "" if `call` throws none.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "";
}

class EachStream : public EachDevice {};
GRADRING_ON_EACH_DEVICE(EachStream);

TEST_P(EachStream, KeepsTheOrder) {
  const auto stream = make_stream();
  std::vector<int> seen, expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  for (int i = 0; i < 100; ++i) stream->enqueue([&seen, i] { seen.push_back(i); });
  stream->synchronize(soon());
  EXPECT_EQ(seen, expected);
}

TEST_P(EachStream, CopiesAndClears) {
  const auto stream = make_stream();
  constexpr std::size_t kCount = 1000;
  constexpr std::size_t kBytes = kCount * sizeof(int);
  const Buffer host = device_->allocate(kBytes, MemoryKind::pinned);
  const Buffer first = device_->allocate(kBytes, MemoryKind::device);
  const Buffer second = device_->allocate(kBytes, MemoryKind::device);
  const std::span<int> values(host.as<int>(), kCount);
  std::ranges::fill(values, 1);
  stream->enqueue_copy(second.data(), host.data(), kBytes);
  stream->synchronize(soon());
  std::ranges::fill(values, 7);
  stream->enqueue_copy(first.data(), host.data(), kBytes);
  stream->enqueue_copy(second.data(), first.data(), kBytes - sizeof(int));
  stream->enqueue_zero(second.data(), 2 * sizeof(int));
  stream->enqueue_copy(nullptr, nullptr, 0);
  stream->enqueue_zero(nullptr, 0);
  stream->enqueue_copy(host.data(), second.data(), kBytes);
  stream->synchronize(soon());
  std::vector<int> expected(kCount, 7);
  expected[0] = expected[1] = 0;
  expected[kCount - 1] = 1;
  EXPECT_THAT(values, testing::ElementsAreArray(expected));
}

TEST_P(EachStream, AnEventIsReachedWhenTheWorkBeforeItIsDone) {
  const auto stream = make_stream();
  const auto event = device_->make_event();
  EXPECT_TRUE(event->reached()) << "a new event counts as reached";
  std::atomic<bool> done = false;
  for (int round = 0; round < 3; ++round) {
    done = false;
    stream->enqueue([&] { done = true; });
    stream->record(*event);
    wait(*event, soon());
    EXPECT_TRUE(done);
  }
}

TEST_P(EachStream, ANewEventHoldsNobodyUp) {
  const auto stream = make_stream();
  const auto event = device_->make_event();
  stream->enqueue_wait(*event);
  stream->synchronize(soon());
}

/// Streams whose work runs behind the caller's back. A lambda that waits for a promise holds the stream up.
class AsynchronousStream : public EachDevice {};
GRADRING_ON_EACH_ASYNCHRONOUS_DEVICE(AsynchronousStream);

TEST_P(AsynchronousStream, RunsWorkOnAnotherThread) {
  const auto stream = make_stream();
  std::thread::id worker;
  stream->enqueue([&] { worker = std::this_thread::get_id(); });
  stream->synchronize(soon());
  EXPECT_NE(worker, std::thread::id());
  EXPECT_NE(worker, std::this_thread::get_id());
}

TEST_P(AsynchronousStream, KeepsAnErrorAndDropsTheRest) {
  std::atomic<bool> ran = false;
  std::promise<void> go;
  const auto stream = make_stream();
  stream->enqueue([&] {
    go.get_future().wait();
    throw DeviceError("the first error");
  });
  stream->enqueue([&] { ran = true; });
  go.set_value();
  for (int again = 0; again < 3; ++again) EXPECT_EQ(error_of([&] { stream->synchronize(soon()); }), "the first error");
  EXPECT_FALSE(ran);
  EXPECT_THROW(stream->enqueue([] {}), DeviceError);
  const auto event = device_->make_event();
  EXPECT_THROW(stream->record(*event), DeviceError);
  EXPECT_TRUE(event->reached()) << "an event that could not be recorded is as it was";
}

TEST_P(AsynchronousStream, EventsCarryTheError) {
  std::promise<void> go;
  const auto failing = make_stream();
  const auto waiting = make_stream();
  const auto event = device_->make_event();
  failing->enqueue([&] {
    go.get_future().wait();
    throw DeviceError("the root cause");
  });
  failing->record(*event);
  waiting->enqueue_wait(*event);
  go.set_value();
  EXPECT_EQ(error_of([&] { wait(*event, soon()); }), "the root cause");
  EXPECT_EQ(error_of([&] { waiting->synchronize(soon()); }), "the root cause");
}

TEST_P(AsynchronousStream, SynchronizeHasADeadline) {
  std::promise<void> go;
  const auto stream = make_stream();
  stream->enqueue([&] { go.get_future().wait(); });
  EXPECT_THROW(stream->synchronize(Deadline::after(1ms)), DeviceError);
  go.set_value();
  stream->synchronize(soon());
}

TEST_P(AsynchronousStream, DestructorFinishesTheQueue) {
  std::atomic<int> done = 0;
  {
    const auto stream = make_stream();
    for (int i = 0; i < 50; ++i) stream->enqueue([&] { ++done; });
  }
  EXPECT_EQ(done, 50);
}

TEST_P(AsynchronousStream, DestroysWorkWithTheStreamAtTheLatest) {
  const auto held = std::make_shared<int>(1);
  {
    const auto stream = make_stream();
    for (int i = 0; i < 10; ++i) stream->enqueue([held] {});
    stream->synchronize(soon());
  }
  EXPECT_EQ(held.use_count(), 1);
}

TEST_P(AsynchronousStream, EventsOrderTwo) {
  int value = 0;  // plain: only the event orders the two streams
  const auto first = make_stream();
  const auto second = make_stream();
  const auto event = device_->make_event();
  for (int round = 0; round < 20; ++round) {
    first->enqueue([&] { value = 2 * value + 1; });
    first->record(*event);
    second->enqueue_wait(*event);
    second->enqueue([&] { value -= 1; });
    second->record(*event);
    first->enqueue_wait(*event);
  }
  first->synchronize(soon());
  second->synchronize(soon());
  EXPECT_EQ(value, 0);
}

TEST_P(AsynchronousStream, WaitingForAnEventHasADeadline) {
  std::promise<void> go;
  const auto stream = make_stream();
  const auto event = device_->make_event();
  stream->enqueue([&] { go.get_future().wait(); });
  stream->record(*event);
  EXPECT_FALSE(event->reached());
  EXPECT_THROW(wait(*event, Deadline::after(1ms)), DeviceError);
  go.set_value();
  wait(*event, soon());
}

TEST(InPlaceStream, ThrowsWhereTheErrorHappens) {
  HostDevice device;
  const auto stream = device.make_stream(StreamMode::in_place);
  EXPECT_THROW(stream->enqueue([] { throw DeviceError("here"); }), DeviceError);
}

}  // namespace
}  // namespace gradring::kernels
