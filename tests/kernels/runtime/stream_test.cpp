// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <numeric>
#include <thread>
#include <vector>

#include "kernels/runtime/error.h"
#include "kernels/runtime/host/host_device.h"

namespace gradring::kernels {
namespace {

using namespace std::chrono_literals;

Deadline soon() { return Deadline::after(30s); }

class EachMode : public testing::TestWithParam<StreamMode> {
 protected:
  HostDevice device_;
  std::unique_ptr<Stream> stream_ = device_.make_stream(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Modes, EachMode, testing::Values(StreamMode::in_place, StreamMode::asynchronous),
                         [](const auto& mode) {
                           return std::string(mode.param == StreamMode::in_place ? "in_place" : "asynchronous");
                         });

TEST_P(EachMode, KeepsTheOrder) {
  std::vector<int> seen, expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  for (int i = 0; i < 100; ++i) stream_->enqueue([&seen, i] { seen.push_back(i); });
  stream_->synchronize(soon());
  EXPECT_EQ(seen, expected);
}

TEST_P(EachMode, CopiesAndClears) {
  std::vector<int> from(1000, 7), to(1000, 1);
  stream_->enqueue_copy(to.data(), from.data(), 999 * sizeof(int));
  stream_->enqueue_zero(to.data(), 2 * sizeof(int));
  stream_->enqueue_copy(nullptr, nullptr, 0);
  stream_->enqueue_zero(nullptr, 0);
  stream_->synchronize(soon());
  EXPECT_EQ(to[0], 0);
  EXPECT_EQ(to[1], 0);
  EXPECT_EQ(to[2], 7);
  EXPECT_EQ(to[998], 7);
  EXPECT_EQ(to[999], 1);
}

TEST_P(EachMode, AnEventIsReachedWhenTheWorkBeforeItIsDone) {
  const auto event = device_.make_event();
  EXPECT_TRUE(event->reached()) << "a new event counts as reached";
  std::atomic<bool> done = false;
  for (int round = 0; round < 3; ++round) {
    done = false;
    stream_->enqueue([&] { done = true; });
    stream_->record(*event);
    wait(*event, soon());
    EXPECT_TRUE(done);
  }
}

TEST(InPlaceStream, ThrowsWhereTheErrorHappens) {
  HostDevice device;
  const auto stream = device.make_stream(StreamMode::in_place);
  EXPECT_THROW(stream->enqueue([] { throw DeviceError("here"); }), DeviceError);
}

TEST(ThreadedStream, RunsWorkOnItsOwnThread) {
  HostDevice device;
  const auto stream = device.make_stream(StreamMode::asynchronous);
  std::thread::id worker;
  stream->enqueue([&] { worker = std::this_thread::get_id(); });
  stream->synchronize(soon());
  EXPECT_NE(worker, std::this_thread::get_id());
}

TEST(ThreadedStream, KeepsAnErrorAndDropsTheRest) {
  HostDevice device;
  const auto stream = device.make_stream(StreamMode::asynchronous);
  std::atomic<bool> ran = false;
  std::promise<void> go;
  stream->enqueue([&] {
    go.get_future().wait();
    throw DeviceError("the first error");
  });
  stream->enqueue([&] { ran = true; });
  go.set_value();
  for (int again = 0; again < 3; ++again) {
    try {
      stream->synchronize(soon());
      FAIL() << "the error was lost";
    } catch (const DeviceError& error) {
      EXPECT_STREQ(error.what(), "the first error");
    }
  }
  EXPECT_FALSE(ran);
  EXPECT_THROW(stream->enqueue([] {}), DeviceError);
  const auto event = device.make_event();
  EXPECT_THROW(stream->record(*event), DeviceError);
  EXPECT_TRUE(event->reached()) << "an event that could not be recorded is as it was";
}

TEST(ThreadedStream, EventsCarryTheError) {
  HostDevice device;
  const auto failing = device.make_stream(StreamMode::asynchronous);
  const auto waiting = device.make_stream(StreamMode::asynchronous);
  const auto event = device.make_event();
  std::promise<void> go;
  failing->enqueue([&] {
    go.get_future().wait();
    throw DeviceError("the root cause");
  });
  failing->record(*event);
  waiting->enqueue_wait(*event);
  go.set_value();
  EXPECT_THROW(wait(*event, soon()), DeviceError);
  try {
    waiting->synchronize(soon());
    FAIL() << "the waiting stream did not learn of the error";
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(), "the root cause");
  }
}

TEST(ThreadedStream, SynchronizeHasADeadline) {
  HostDevice device;
  const auto stream = device.make_stream(StreamMode::asynchronous);
  std::promise<void> go;
  stream->enqueue([&] { go.get_future().wait(); });
  EXPECT_THROW(stream->synchronize(Deadline::after(1ms)), DeviceError);
  go.set_value();
  stream->synchronize(soon());
}

TEST(ThreadedStream, DestructorFinishesTheQueue) {
  HostDevice device;
  std::atomic<int> done = 0;
  {
    const auto stream = device.make_stream(StreamMode::asynchronous);
    for (int i = 0; i < 50; ++i) stream->enqueue([&] { ++done; });
  }
  EXPECT_EQ(done, 50);
}

TEST(Event, OrdersTwoStreams) {
  HostDevice device;
  const auto first = device.make_stream(StreamMode::asynchronous);
  const auto second = device.make_stream(StreamMode::asynchronous);
  const auto event = device.make_event();
  int value = 0;  // plain: only the event orders the two threads
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

TEST(Event, WaitHasADeadline) {
  HostDevice device;
  const auto stream = device.make_stream(StreamMode::asynchronous);
  const auto event = device.make_event();
  std::promise<void> go;
  stream->enqueue([&] { go.get_future().wait(); });
  stream->record(*event);
  EXPECT_FALSE(event->reached());
  EXPECT_THROW(wait(*event, Deadline::after(1ms)), DeviceError);
  go.set_value();
  wait(*event, soon());
}

}  // namespace
}  // namespace gradring::kernels
