// SPDX-License-Identifier: Apache-2.0
#include "comm/bench/all_reduce_bench.h"

#include <gtest/gtest.h>

#include "comm/bench/host_bench.h"
#include "kernels/host/host_device.h"
#include "tests/comm/support/ranks.h"

namespace gradring::comm::bench {
namespace {

using kernels::DType;

TEST(AllReduceBench, ChecksAndTimesEveryTypeAndAlgorithm) {
  for (const AllReduceAlgorithm algorithm : {AllReduceAlgorithm::ring, AllReduceAlgorithm::direct})
    tests::run_as_threads(3, [&](ProcessGroup& group) {
      kernels::HostDevice device;
      const auto stream = device.make_stream(kernels::StreamMode::asynchronous);
      AllReduceBench bench(group, *stream, 8 * 1000, algorithm);
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64})
        for (const bool fresh : {false, true}) {
          const Payload payload{.elements = 1000, .dtype = dtype};
          EXPECT_EQ(bench.wrong_elements(payload), std::size_t{0});
          const auto times = bench.seconds(payload, {.warmups = 1, .iterations = 4, .fresh = fresh});
          EXPECT_EQ(times.size(), 4u);
          for (const double time : times) EXPECT_GT(time, 0);
        }
    });
}

TEST(HostBench, ChecksAndTimesCollectivesOfHostValues) {
  const Payload flags{.elements = kAgreedFlags, .dtype = DType::i64};
  tests::run_as_threads(3, [&](ProcessGroup& group) {
    HostBench agreement(group, HostCollective::agreement), barrier(group, HostCollective::barrier);
    EXPECT_EQ(agreement.wrong_elements(flags), std::size_t{0});
    EXPECT_EQ(barrier.wrong_elements({}), std::nullopt);
    for (HostBench* bench : {&agreement, &barrier})
      EXPECT_EQ(bench->seconds(flags, {.warmups = 1, .iterations = 4}).size(), 4u);
  });
}

TEST(AllReduceBench, ReportsTheSlowestRanksTime) {
  tests::run_as_threads(3, [](ProcessGroup& group) {
    const auto rank = static_cast<double>(group.rank());
    EXPECT_EQ(slowest_of_all_ranks(group, std::vector{rank, -rank, 5.0}), (std::vector{2.0, 0.0, 5.0}));
  });
}

TEST(AllReduceBench, ComputesBandwidthsAsNcclTests) {
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(1000, 0.5), 2000);
  EXPECT_DOUBLE_EQ(bus_bandwidth(1000, 0.5, 2), 2000);
  EXPECT_DOUBLE_EQ(bus_bandwidth(1000, 0.5, 4), 3000);
  EXPECT_DOUBLE_EQ(bus_bandwidth(1000, 0.5, 1), 0);
}

}  // namespace
}  // namespace gradring::comm::bench
