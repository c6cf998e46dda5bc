// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <pthread.h>
#include <algorithm>
#include <atomic>
#include <numeric>
#include <system_error>
#include <vector>

#include "kernels/simt/engine/pool.h"
#include "tests/kernels/simt/device_fixture.h"
#include "tests/kernels/simt/kernels.h"

namespace gradring::simt::detail {
namespace {

/// While this lives, no thread can be started: its stack would need more addresses than there are.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_attr_t attributes;
    ::pthread_getattr_default_np(&attributes);
    ::pthread_attr_getstacksize(&attributes, &before_);
    set(std::size_t{1} << 50);
  }
  ~NoMoreThreads() { set(before_); }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  static void set(std::size_t bytes) {
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, bytes);
    EXPECT_EQ(::pthread_setattr_default_np(&attributes), 0);
    ::pthread_attr_destroy(&attributes);
  }
  std::size_t before_ = 0;
};

TEST(Pool, WorksAgainAfterThreadsCouldNotBeStarted) {
  std::atomic<int> calls = 0;
  const auto job = [&](unsigned) { ++calls; };
  Pool pool(2);
  {
    const NoMoreThreads none;
    EXPECT_THROW(pool.run(3, job), std::system_error);
  }
  EXPECT_EQ(calls, 0);
  pool.run(3, job);
  EXPECT_EQ(calls, 3);
}

TEST(Pool, IsDestroyedWithoutThreads) {
  Pool pool(1);
  const NoMoreThreads none;
  EXPECT_THROW(pool.run(2, [](unsigned) {}), std::system_error);
}

}  // namespace
}  // namespace gradring::simt::detail

namespace gradring::simt_test {
namespace {

class SharedMemory : public EachOrder {};
SIMT_IN_EACH_ORDER(SharedMemory);

TEST_P(SharedMemory, TransposesThroughATile) {
  constexpr unsigned kRows = 37, kColumns = 50;
  std::vector<float> from(kRows * kColumns), to(from.size());
  std::iota(from.begin(), from.end(), 0.0f);
  transpose(*stream_, from.data(), to.data(), kRows, kColumns);
  for (unsigned row = 0; row < kRows; ++row)
    for (unsigned column = 0; column < kColumns; ++column)
      ASSERT_EQ(to[column * kRows + row], from[row * kColumns + column]);
}

TEST_P(SharedMemory, ReversesInStaticAndDynamicMemory) {
  for (const bool dynamic : {false, true})
    for (const unsigned threads : {1u, 31u, 32u, 33u, 256u}) {
      constexpr unsigned kBlocks = 5;
      std::vector<float> values(kBlocks * threads), expected;
      std::iota(values.begin(), values.end(), 0.0f);
      expected = values;
      for (unsigned block = 0; block < kBlocks; ++block)
        std::reverse(expected.begin() + block * threads, expected.begin() + (block + 1) * threads);
      reverse_pieces(*stream_, values.data(), kBlocks, threads, dynamic);
      ASSERT_EQ(values, expected) << threads << " threads";
    }
}

TEST_P(SharedMemory, ReachesTheLimitOfABlock) {
  for (const std::size_t bytes : {0, 4, 4096, 227 * 1024}) {
    std::int32_t ok = 0;
    touch_dynamic_shared(*stream_, bytes, &ok);
    EXPECT_EQ(ok, 1) << bytes;
  }
}

TEST_P(SharedMemory, SumsOverBlockAndGrid) {
  for (const std::size_t count : {0, 1, 1000, 10007})
    for (const unsigned threads : {32u, 96u, 256u}) {
      std::vector<float> x(count);
      std::iota(x.begin(), x.end(), 0.0f);
      float total = 0.0f;
      sum(*stream_, 5, threads, x.data(), count, &total);
      const double exact = 0.5 * static_cast<double>(count) * (static_cast<double>(count) - 1.0);
      EXPECT_NEAR(total, exact, 1e-6 * exact);
    }
}

TEST_P(SharedMemory, BarriersVote) {
  for (const unsigned odd : {0u, 1u, 50u, 100u}) {
    std::vector<std::int32_t> values(100);
    std::fill_n(values.begin(), odd, 1);
    std::int32_t out[3] = {};
    block_votes(*stream_, 100, values.data(), out);
    EXPECT_EQ(out[0], static_cast<int>(odd));
    EXPECT_EQ(out[1], odd == 100);
    EXPECT_EQ(out[2], odd > 0);
  }
}

}  // namespace
}  // namespace gradring::simt_test
