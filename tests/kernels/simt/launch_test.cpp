// SPDX-License-Identifier: Apache-2.0
// What a stream tells about the kernels that are launched on it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "kernels/host/host_device.h"
#include "kernels/runtime/stream.h"
#include "kernels/simt/engine/error.h"
#include "kernels/simt/engine/kernel_name.h"
#include "tests/kernels/simt/device_fixture.h"
#include "tests/kernels/simt/kernels.h"

namespace gradring::simt_test {
namespace {

class Launch : public EachOrder {};
SIMT_IN_EACH_ORDER(Launch);

TEST_P(Launch, GivesEveryThreadItsIndex) {
  for (const bool flat : {false, true})
    for (const Extents grid : {Extents{1, 1, 1}, Extents{7, 1, 1}, Extents{3, 2, 4}})
      for (const Extents block : {Extents{1, 1, 1}, Extents{33, 1, 1}, Extents{8, 4, 3}}) {
        const std::size_t threads = std::size_t{grid.x} * grid.y * grid.z * block.x * block.y * block.z;
        std::vector<std::int32_t> index(threads, -1), expected(threads);
        std::iota(expected.begin(), expected.end(), 0);
        index_threads(*stream_, grid, block, index.data(), flat);
        EXPECT_EQ(index, expected);
      }
}

TEST_P(Launch, TakesTheLargestBlock) {
  std::vector<std::int32_t> index(1024, -1), expected(1024);
  std::iota(expected.begin(), expected.end(), 0);
  index_threads(*stream_, {1, 1, 1}, {64, 1, 16}, index.data(), false);
  EXPECT_EQ(index, expected);
}

TEST_P(Launch, VisitsEachElementOnce) {
  for (const std::size_t count : {0, 1, 2, 31, 32, 33, 127, 1023, 5000})
    for (const unsigned blocks : {1u, 3u, 16u})
      for (const unsigned threads : {1u, 32u, 77u}) {
        std::vector<std::int32_t> visits(count);
        count_visits(*stream_, blocks, threads, visits.data(), count);
        EXPECT_THAT(visits, testing::Each(1)) << count << " elements, " << blocks << " x " << threads;
      }
}

TEST_P(Launch, GridForCoversAllElements) {
  for (const std::size_t count : {0, 1, 4095, 4096, 4097, 100000}) {
    std::vector<std::int32_t> visits(count);
    count_visits_by_default(*stream_, visits.data(), count);
    EXPECT_THAT(visits, testing::Each(1));
  }
}

TEST_P(Launch, BlockRangeVisitsEachElementOnce) {
  for (const unsigned begin : {0u, 5u, 40u})
    for (const unsigned threads : {1u, 7u, 32u, 64u}) {
      constexpr unsigned kEnd = 40, kBlocks = 3;
      std::vector<std::int32_t> visits(kEnd);
      count_block_visits(*stream_, kBlocks, threads, visits.data(), begin, kEnd);
      for (unsigned i = 0; i < kEnd; ++i) EXPECT_EQ(visits[i], i < begin ? 0 : int{kBlocks}) << i;
    }
}

TEST_P(Launch, LoadsAndStoresWide) {
  constexpr std::size_t kCount = 4 * 1001;
  kernels::Buffer x = device_.allocate(kCount * sizeof(float), kernels::MemoryKind::device);
  kernels::Buffer y = device_.allocate(kCount * sizeof(float), kernels::MemoryKind::device);
  for (std::size_t i = 0; i < kCount; ++i) x.as<float>()[i] = static_cast<float>(i), y.as<float>()[i] = 1.0f;
  axpy_wide(*stream_, 2.0f, x.as<float>(), y.as<float>(), kCount);
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(y.as<float>()[i], static_cast<float>(2 * i + 1));
}

TEST_P(Launch, CopiesItsArguments) {
  std::vector<float> x(100), y(100);
  std::iota(x.begin(), x.end(), 0.0f);
  const auto threaded = device_.make_stream(kernels::StreamMode::asynchronous);
  {
    Polynomial square_plus_one{{1.0f, 0.0f, 1.0f}, 2};
    evaluate(*threaded, square_plus_one, x.data(), y.data(), x.size());
    square_plus_one.degree = 0;  // too late to matter
  }
  threaded->synchronize(Deadline::after(std::chrono::seconds(30)));
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], x[i] * x[i] + 1.0f);
}

TEST_P(Launch, WithoutBlocksDoesNothing) {
  for (const Extents grid : {Extents{0, 1, 1}, Extents{1, 0, 1}, Extents{1, 1, 0}})
    index_threads(*stream_, grid, {32, 1, 1}, nullptr, false);
}

TEST_P(Launch, RejectsConfigurationsThatNoGpuTakes) {
  EXPECT_THROW(index_threads(*stream_, {1, 1, 1}, {0, 1, 1}, nullptr, false), simt::Error);
  EXPECT_THROW(index_threads(*stream_, {1, 1, 1}, {1025, 1, 1}, nullptr, true), simt::Error);
  EXPECT_THROW(index_threads(*stream_, {1, 1, 1}, {32, 33, 1}, nullptr, false), simt::Error);
  EXPECT_THROW(index_threads(*stream_, {1, 1, 1}, {1, 1, 65}, nullptr, false), simt::Error);
  EXPECT_THROW(index_threads(*stream_, {1, 65536, 1}, {1, 1, 1}, nullptr, false), simt::Error);
  std::int32_t ok = 0;
  EXPECT_THROW(touch_dynamic_shared(*stream_, 227 * 1024 + 4, &ok), simt::Error);
}

TEST_P(Launch, ErrorNamesTheLaunchSite) {
  try {
    index_threads(*stream_, {1, 1, 1}, {2000, 1, 1}, nullptr, false);
    FAIL() << "a block of 2000 threads was accepted";
  } catch (const simt::Error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("(2000,1,1)"), testing::HasSubstr("kernels.cu:")));
    EXPECT_THAT(error.site().file, testing::EndsWith("kernels.cu"));
  }
}

using kernels::HostDevice;
using kernels::LaunchLog;
using kernels::LaunchReport;
using kernels::Stream;
using kernels::StreamMode;

class LaunchReports : public testing::TestWithParam<StreamMode> {
 protected:
  void finish() { stream_->synchronize(Deadline::after(std::chrono::seconds(30))); }

  HostDevice device_;
  std::unique_ptr<Stream> stream_ = device_.make_stream(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Modes, LaunchReports, testing::Values(StreamMode::in_place, StreamMode::asynchronous),
                         [](const auto& mode) {
                           return mode.param == StreamMode::in_place ? "in_place" : "asynchronous";
                         });

TEST_P(LaunchReports, DescribeTheLaunch) {
  std::vector<std::int32_t> index(6 * 8);
  std::vector<float> values(64);
  LaunchLog log(*stream_);
  index_threads(*stream_, {3, 2, 1}, {4, 2, 1}, index.data(), false);
  reverse_pieces(*stream_, values.data(), 2, 32, true);
  finish();
  ASSERT_EQ(log.launches().size(), 2u);
  const LaunchReport& first = log.launches()[0];
  EXPECT_EQ(first.kernel, "index_threads_kernel");
  EXPECT_EQ(first.blocks, 6u);
  EXPECT_EQ(first.threads, 8u);
  EXPECT_EQ(first.dynamic_shared_bytes, 0u);
  EXPECT_FALSE(first.resources.has_value()) << "a CPU has no such registers";
  EXPECT_EQ(log.launches()[1].dynamic_shared_bytes, 32 * sizeof(float));
}

TEST_P(LaunchReports, CoverTheLifetimeOfTheLog) {
  std::vector<std::int32_t> index(8);
  const auto launch = [&] { index_threads(*stream_, {1, 1, 1}, {8, 1, 1}, index.data(), true); };
  launch();
  {
    LaunchLog outer(*stream_);
    launch();
    {
      LaunchLog inner(*stream_);
      launch();
      EXPECT_EQ(inner.launches().size(), 1u);
    }
    launch();
    EXPECT_EQ(outer.launches().size(), 2u);
  }
  EXPECT_EQ(stream_->launch_observer(), nullptr);
  launch();
  finish();
}

TEST_P(LaunchReports, OmitEmptyGrids) {
  LaunchLog log(*stream_);
  index_threads(*stream_, {0, 1, 1}, {8, 1, 1}, nullptr, false);
  EXPECT_THAT(log.launches(), testing::IsEmpty());
}

TEST(KernelName, IsWithoutNamespacesParametersAndResult) {
  using simt::short_name_of;
  EXPECT_EQ(short_name_of("a::(anonymous namespace)::sum_kernel(float const*, std::vector<int>)"), "sum_kernel");
  EXPECT_EQ(short_name_of("void a::b::(anonymous namespace)::sum_kernel<float, 4>(float const*)"),
            "sum_kernel<float, 4>");
  EXPECT_EQ(short_name_of("void sum_kernel<a::Tile<16, (a::Kind)2>, true>(a::Tile<16, (a::Kind)2>)"),
            "sum_kernel<a::Tile<16, (a::Kind)2>, true>");
  EXPECT_EQ(short_name_of("sum_kernel"), "sum_kernel");
}

}  // namespace
}  // namespace gradring::simt_test
