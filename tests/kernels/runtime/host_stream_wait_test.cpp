// SPDX-License-Identifier: Apache-2.0
// How long a stream of a CPU waits for another one's event.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "kernels/base/error.h"
#include "kernels/host/host_device.h"
#include "tests/support/test_clock.h"

namespace gradring::kernels {
namespace {

using namespace std::chrono_literals;
using tests::TestClock;

constexpr auto kStreamPatience = 40min;

/// A stream with two pieces of work that the test ends, and one that waits for them.
class HostStreamWait : public ::testing::Test {
 protected:
  HostStreamWait() {
    for (std::promise<void>& gate : gates_) first_->enqueue([&] { gate.get_future().wait(); });
    first_->record(*event_);
    second_->enqueue_wait(*event_);
    clock_.wait_for_readings(3);
  }
  ~HostStreamWait() override {
    open(0);
    open(1);
  }

  void open(std::size_t gate) {
    if (!std::exchange(opened_[gate], true)) gates_[gate].set_value();
  }
  /// Lets time pass, and the waiting stream see that.
  void pass(std::chrono::nanoseconds time) {
    clock_.pass(time);
    clock_.wait_for_readings(5);
  }
  void synchronize() { second_->synchronize(Deadline::after(1h)); }

 private:
  TestClock clock_;
  std::promise<void> gates_[2];
  bool opened_[2] = {};
  HostDevice device_{{}, kStreamPatience};
  std::unique_ptr<Event> event_ = device_.make_event();
  std::unique_ptr<Stream> first_ = device_.make_stream(StreamMode::asynchronous);
  std::unique_ptr<Stream> second_ = device_.make_stream(StreamMode::asynchronous);
};

TEST_F(HostStreamWait, LastsAsLongAsTheDeviceSays) {
  pass(39min);
  open(0);
  open(1);
  EXPECT_NO_THROW(synchronize());
}

TEST_F(HostStreamWait, EndsIfTheOtherStreamCompletesNothing) {
  TestClock::pass(41min);
  try {
    synchronize();
    ADD_FAILURE() << "it still waits";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("completed no work for 2400 s"));
  }
}

TEST_F(HostStreamWait, CountsFromTheOthersLastCompletedWork) {
  pass(39min);
  open(0);
  pass(39min);
  open(1);
  EXPECT_NO_THROW(synchronize());
}

}  // namespace
}  // namespace gradring::kernels
