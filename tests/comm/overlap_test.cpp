// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "comm/groups.h"
#include "comm/transport/error.h"
#include "kernels/host/host_device.h"
#include "tests/comm/support/expect_error.h"
#include "tests/comm/support/patterns.h"
#include "tests/comm/support/ranks.h"
#include "tests/support/test_clock.h"

namespace gradring::comm {
namespace {

constexpr std::size_t kBuckets = 6;
constexpr std::size_t kBucketElements = 10'001;
constexpr int kRounds = 5;

/// As in DDP: one stream computes buckets, another reduces each as soon as it is ready, and the host continues.
void sum_buckets_while_computing(ProcessGroup& group) {
  kernels::HostDevice device;
  const auto segment = group.allocate(kBuckets * kBucketElements * sizeof(float));
  auto* const gradients = segment->as<float>();
  std::array<std::unique_ptr<kernels::Event>, kBuckets> ready;
  for (auto& event : ready) event = device.make_event();
  const auto summed = device.make_event();
  const auto compute = device.make_stream(kernels::StreamMode::asynchronous);
  const auto carry = device.make_stream(kernels::StreamMode::asynchronous);

  std::vector<std::vector<float>> results(kRounds);
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
      compute->enqueue([=, rank = group.rank()] {
        for (std::size_t i = bucket * kBucketElements; i < (bucket + 1) * kBucketElements; ++i)
          gradients[i] = static_cast<float>(tests::whole_number(rank + round, i));
      });
      compute->record(*ready[bucket]);
      carry->enqueue_wait(*ready[bucket]);
      group.all_reduce({.segment = segment.get(), .slice = {bucket * kBucketElements, kBucketElements}}, *carry);
    }
    carry->record(*summed);
    compute->enqueue_wait(*summed);
    compute->enqueue([&results, gradients, round] {
      results[static_cast<std::size_t>(round)].assign(gradients, gradients + kBuckets * kBucketElements);
    });
    // The host channel works while collectives are in flight.
    std::int64_t one = 1;
    group.all_reduce_on_host(std::span(&one, 1));
    tests::require(one == group.world_size(), "a host helper during collectives is wrong");
  }
  compute->synchronize(Deadline::after(std::chrono::seconds(60)));
  carry->synchronize(Deadline::after(std::chrono::seconds(60)));

  for (int round = 0; round < kRounds; ++round)
    for (std::size_t i = 0; i < kBuckets * kBucketElements; ++i) {
      int sum = 0;
      for (int rank = 0; rank < group.world_size(); ++rank) sum += tests::whole_number(rank + round, i);
      tests::require(results[static_cast<std::size_t>(round)][i] == static_cast<float>(sum), "a bucket's sum is wrong");
    }
}

TEST(Overlap, ReducesBucketsWhileAnotherStreamComputes) {
  for (const int world : {1, 2, 3, 4}) tests::run_as_threads(world, sum_buckets_while_computing);
}

TEST(Overlap, ReducesBucketsBetweenProcesses) { tests::run_as_processes(2, sum_buckets_while_computing); }

TEST(Overlap, AThreadedStreamThrowsItsErrors) {
  const auto errors = tests::errors_of_threads(
      2,
      [](ProcessGroup& group) {
        kernels::HostDevice device;
        const auto segment = group.allocate(400);
        const auto stream = device.make_stream(kernels::StreamMode::asynchronous);
        group.all_reduce({.segment = segment.get(), .slice = {0, static_cast<std::size_t>(99 + group.rank())}},
                         *stream);
        stream->synchronize(Deadline::after(std::chrono::seconds(60)));
      },
      std::chrono::seconds(50));
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_THROW(std::rethrow_exception(error), Desync);
  }
}

/// Longer than a stream waits for other work.
TEST(Overlap, AStreamThatWaitsForACollectiveLearnsWhichRankIsMissing) {
  constexpr std::chrono::minutes kTimeout(30);
  const tests::TestClock clock;
  InProcessHub hub(2, kTimeout);
  std::promise<void> over;
  const std::jthread missing([&] {
    const auto group = hub.join(1);
    const auto segment = group->allocate(64);
    over.get_future().wait();
  });
  const auto group = hub.join(0);
  const auto segment = group->allocate(64);
  kernels::HostDevice device({}, kernels::HostDevice::kPatience + kTimeout);
  const auto summed = device.make_event();
  const auto compute = device.make_stream(kernels::StreamMode::asynchronous);
  const auto carry = device.make_stream(kernels::StreamMode::asynchronous);
  group->all_reduce({.segment = segment.get(), .slice = {0, 16}}, *carry);
  carry->record(*summed);
  compute->enqueue_wait(*summed);
  clock.wait_for_readings(20);
  clock.pass(kernels::HostDevice::kPatience + std::chrono::minutes(1));
  clock.wait_for_readings(100);  // by both streams
  // The collective's time is over, not that of the stream.
  clock.pass(kTimeout - kernels::HostDevice::kPatience);
  std::exception_ptr error;
  try {
    compute->synchronize(Deadline::after(std::chrono::hours(1)));
  } catch (...) {
    error = std::current_exception();
  }
  over.set_value();
  tests::expect_error<Timeout>(error, 1, "all_reduce 1");
}

}  // namespace
}  // namespace gradring::comm
