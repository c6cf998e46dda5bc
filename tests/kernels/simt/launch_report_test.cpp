// SPDX-License-Identifier: Apache-2.0
// What a stream tells about the kernels that are launched on it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "kernels/runtime/host/host_device.h"
#include "kernels/runtime/launch_log.h"
#include "kernels/simt/error.h"
#include "kernels/simt/kernel_name.h"
#include "tests/kernels/simt/kernels.h"

namespace gradring::simt_test {
namespace {

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

TEST_P(LaunchReports, SayWhatWasLaunched) {
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

TEST_P(LaunchReports, AreOfWhatIsLaunchedMeanwhile) {
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

TEST_P(LaunchReports, AreNotOfAGridWithoutBlocks) {
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
