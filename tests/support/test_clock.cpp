// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_clock.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

namespace gradring::tests {
namespace {

using std::chrono::nanoseconds;

std::atomic<nanoseconds> moment{std::chrono::hours(5)};
std::atomic<int> readings{0};

nanoseconds read() {
  ++readings;
  return moment;
}

}  // namespace

TestClock::TestClock() : before_(RunningClock::time()), time_(read) { RunningClock::use(time_); }

TestClock::~TestClock() { RunningClock::use(before_); }

void TestClock::pass(nanoseconds time) {
  while (time.count() > 0) {
    const nanoseconds part = std::min<nanoseconds>(time, RunningClock::kLongestGap);
    moment = moment.load() + part;
    RunningClock::now();
    time -= part;
  }
}

void TestClock::stop_for(nanoseconds time) { moment = moment.load() + time; }

void TestClock::wait_for_readings(int count) {
  constexpr std::chrono::seconds kPatience(60);
  const int before = readings;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (readings - before < count) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("no thread reads the clock");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace gradring::tests
