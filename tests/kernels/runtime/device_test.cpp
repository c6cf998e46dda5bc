// SPDX-License-Identifier: Apache-2.0
// What must hold of streams and events, whatever the device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/host/host_device.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/stream.h"
#include "kernels/simt/engine/sanitizer.h"
#include "tests/support/test_gpus.h"

namespace gradring::kernels {

/// A device to test on, and how it runs a stream's work.
struct DeviceCase {
  DeviceKind kind;
  StreamMode mode;
};

/// "cpu_in_place"
std::string name_of(const DeviceCase& device_case);

/// The device of a case; a GPU is real or simulated (tests/support/test_gpus.h). Without one: null, and the reason.
std::unique_ptr<Device> open_device(DeviceKind kind, std::string& why_not);

/// Runs on the CPU and on a GPU; skipped, with the reason, without one.
class EachDevice : public testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override {
    std::string why_not;
    device_ = open_device(GetParam().kind, why_not);
    if (!device_) GTEST_SKIP() << why_not;
  }

  std::unique_ptr<Stream> make_stream() { return device_->make_stream(GetParam().mode); }

  std::unique_ptr<Device> device_;
};

/// Every way to run work, or those alone that run it behind the caller's back.
#define GRADRING_ON_EACH_DEVICE(Suite)                                                              \
  INSTANTIATE_TEST_SUITE_P(Devices, Suite,                                                          \
                           testing::Values(DeviceCase{DeviceKind::cpu, StreamMode::in_place},       \
                                           DeviceCase{DeviceKind::cpu, StreamMode::asynchronous},   \
                                           DeviceCase{DeviceKind::cuda, StreamMode::asynchronous}), \
                           [](const auto& device_case) { return name_of(device_case.param); })
#define GRADRING_ON_EACH_ASYNCHRONOUS_DEVICE(Suite)                                                 \
  INSTANTIATE_TEST_SUITE_P(Devices, Suite,                                                          \
                           testing::Values(DeviceCase{DeviceKind::cpu, StreamMode::asynchronous},   \
                                           DeviceCase{DeviceKind::cuda, StreamMode::asynchronous}), \
                           [](const auto& device_case) { return name_of(device_case.param); })

std::string name_of(const DeviceCase& device_case) {
  if (device_case.kind == DeviceKind::cuda) return "cuda";
  return device_case.mode == StreamMode::in_place ? "cpu_in_place" : "cpu_asynchronous";
}

std::unique_ptr<Device> open_device(DeviceKind kind, std::string& why_not) {
  if (kind == DeviceKind::cpu) return std::make_unique<HostDevice>();
  const tests::TestGpus gpus = tests::open_test_gpus({GRADRING_CUDA_MODULE, GRADRING_SIMULATED_GPU_MODULE});
  why_not = gpus.why_not;
  return gpus.make_device();
}

namespace {

TEST(DeviceId, ParsesWhatItPrints) {
  for (const DeviceId id :
       {DeviceId{DeviceKind::cpu, 0}, DeviceId{DeviceKind::cuda, 0}, DeviceId{DeviceKind::cuda, 12}})
    EXPECT_EQ(DeviceId::parse(id.to_string()), id);
  EXPECT_EQ(DeviceId::parse("cuda"), (DeviceId{DeviceKind::cuda, 0}));
}

TEST(DeviceId, RejectsOtherSpellings) {
  for (const char* wrong : {"", "gpu", "CPU", "cpu:0", "cuda:", "cuda:-1", "cuda:x", "cuda:1x", "cuda:99999999999"})
    EXPECT_THROW(DeviceId::parse(wrong), InvalidArgument) << wrong;
}

TEST(HostDevice, DescribesItself) {
  HostDevice device;
  EXPECT_EQ(device.id().to_string(), "cpu");
  EXPECT_THAT(device.description(), testing::HasSubstr("threads"));
}

class Memory : public EachDevice {};
GRADRING_ON_EACH_DEVICE(Memory);

TEST_P(Memory, IsAlignedAndHoldsWhatIsWritten) {
  const auto stream = make_stream();
  for (const std::size_t bytes : {1, 63, 64, 65, 1 << 20}) {
    const Buffer on_device = device_->allocate(bytes, MemoryKind::device);
    const Buffer pinned = device_->allocate(bytes, MemoryKind::pinned);
    for (const Buffer* buffer : {&on_device, &pinned}) {
      ASSERT_EQ(buffer->size(), bytes);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64, 0u);
    }
    std::memset(pinned.data(), 1, bytes);
    stream->enqueue_copy(on_device.data(), pinned.data(), bytes);
    stream->enqueue_zero(pinned.data(), bytes);
    stream->enqueue_copy(pinned.data(), on_device.data(), bytes);
    stream->synchronize(Deadline::after(std::chrono::seconds(30)));
    EXPECT_EQ(pinned.as<std::uint8_t>()[0], 1);
    EXPECT_EQ(pinned.as<std::uint8_t>()[bytes - 1], 1);
  }
}

TEST_P(Memory, MayBeEmpty) {
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned})
    EXPECT_EQ(device_->allocate(0, kind).data(), nullptr);
  EXPECT_EQ(Buffer().size(), 0u);
}

TEST_P(Memory, ErrorReportsTheRequestedBytes) {
  if (simt::detail::kAddressSanitizer || simt::detail::kThreadSanitizer)
    GTEST_SKIP() << "sanitizers end the process where an allocation fails";
  const std::size_t too_much = std::size_t{1} << 60;
  try {
    const Buffer buffer = device_->allocate(too_much, MemoryKind::device);
    FAIL() << "a machine with an exabyte";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(std::to_string(too_much)));
  }
  EXPECT_EQ(device_->allocate(64, MemoryKind::device).size(), 64u) << "a device is not the worse for it";
}

TEST_P(Memory, CanBeAllocatedBySeveralThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (std::size_t bytes = 1; bytes < 2000; bytes *= 2)
        EXPECT_EQ(device_->allocate(bytes, MemoryKind::device).size(), bytes);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Buffer, MovesAndReleasesOnce) {
  struct Counter final : Buffer::Resource {
    std::vector<std::size_t> released;
    void release(void*, std::size_t bytes) noexcept override { released.push_back(bytes); }
  } counter;
  int memory = 0;
  {
    Buffer first(&memory, 4, counter);
    const Buffer second = std::move(first);
    EXPECT_EQ(second.as<int>(), &memory);
    EXPECT_THAT(counter.released, testing::IsEmpty());
  }
  EXPECT_THAT(counter.released, testing::ElementsAre(4));
}

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

TEST_P(EachStream, ANewEventCountsAsReached) {
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

TEST_P(AsynchronousStream, EventsOrderTwoStreams) {
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

/// AddressSanitizer sees a mark that is set after its timer is gone.
TEST_P(AsynchronousStream, OutlivesATimerWhoseMarksItHasNotReached) {
  std::promise<void> go;
  const auto stream = make_stream();
  auto timer = device_->make_timer();
  bool reached = false;
  stream->enqueue([&] { go.get_future().wait(); });
  timer->start(*stream);
  timer->stop(*stream);
  stream->enqueue([&] { reached = true; });
  timer.reset();
  go.set_value();
  stream->synchronize(soon());
  EXPECT_TRUE(reached);
}

TEST(InPlaceStream, ThrowsWhereTheErrorHappens) {
  HostDevice device;
  const auto stream = device.make_stream(StreamMode::in_place);
  EXPECT_THROW(stream->enqueue([] { throw DeviceError("here"); }), DeviceError);
}

}  // namespace
}  // namespace gradring::kernels
