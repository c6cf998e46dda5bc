// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads launch at the same time, each on a device of its own. Run under TSan this also proves that the
// engine shares nothing between executors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "kernels/simt/engine/error.h"
#include "tests/kernels/simt/device_fixture.h"
#include "tests/kernels/simt/kernels.h"

namespace gradring::simt_test {
namespace {

using kernels::StreamMode;

constexpr int kRanks = 4;

template <class Body>
void run_ranks(Body body) {
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.emplace_back([&body, rank] { body(rank); });
  for (std::thread& rank : ranks) rank.join();
}

class Concurrency : public testing::TestWithParam<StreamMode> {};
INSTANTIATE_TEST_SUITE_P(Modes, Concurrency, testing::Values(StreamMode::in_place, StreamMode::asynchronous),
                         [](const auto& mode) {
                           return std::string(mode.param == StreamMode::in_place ? "in_place" : "asynchronous");
                         });

TEST_P(Concurrency, RanksLaunchTheSameKernelsAtTheSameTime) {
  run_ranks([](int rank) {
    kernels::HostDevice device({.workers = 2, .poison_shared = true});
    const auto stream = device.make_stream(GetParam());
    constexpr unsigned kRows = 20, kColumns = 40;
    std::vector<float> from(kRows * kColumns), to(from.size());
    std::iota(from.begin(), from.end(), static_cast<float>(rank));
    for (int round = 0; round < 5; ++round) {
      float total = 0.0f;
      transpose(*stream, from.data(), to.data(), kRows, kColumns);
      sum(*stream, 3, 64, to.data(), to.size(), &total);
      reverse_pieces(*stream, to.data(), 4, 200, true);
      stream->synchronize(Deadline::after(std::chrono::minutes(2)));
      EXPECT_FLOAT_EQ(total, 800.0f * (static_cast<float>(rank) + 399.5f));
      EXPECT_EQ(to[0], from[19 * kColumns + 9]) << "element 199 of the transpose";
    }
  });
}

TEST_P(Concurrency, ErrorStaysWithItsRank) {
  run_ranks([](int rank) {
    kernels::HostDevice device({.workers = 2});
    const auto stream = device.make_stream(GetParam());
    for (int round = 0; round < 3; ++round) {
      if (rank % 2 == 0) {
        const auto bad = device.make_stream(GetParam());
        EXPECT_THROW(
            {
              index_threads(*bad, {4, 1, 1}, {2000, 1, 1}, nullptr, false);
              bad->synchronize(Deadline::after(std::chrono::minutes(2)));
            },
            simt::Error);
      }
      std::vector<std::int32_t> out(32);
      sum_halves(*stream, out.data());
      stream->synchronize(Deadline::after(std::chrono::minutes(2)));
      EXPECT_EQ(out[0], 120);
    }
  });
}

TEST(ConcurrencyInTurn, OneThreadServesTwoStreamsInTurn) {
  kernels::HostDevice device({.workers = 2});
  const auto first = device.make_stream(StreamMode::in_place);
  const auto second = device.make_stream(StreamMode::in_place);
  for (int round = 0; round < 4; ++round) {
    std::vector<float> values(64);
    std::iota(values.begin(), values.end(), 0.0f);
    reverse_pieces(round % 2 == 0 ? *first : *second, values.data(), 1, 64, round < 2);
    EXPECT_EQ(values[0], 63.0f);
  }
}

TEST(ConcurrencyInTurn, OneStreamServesTwoThreadsInTurn) {
  kernels::HostDevice device;
  const auto stream = device.make_stream(StreamMode::in_place);
  for (int round = 0; round < 4; ++round) {
    std::thread([&] {
      std::int32_t out[32];
      sum_halves(*stream, out);
      EXPECT_EQ(out[31], 376);
    }).join();
  }
}

}  // namespace
}  // namespace gradring::simt_test
