// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "comm/groups.h"
#include "comm/process_group.h"
#include "kernels/base/error.h"
#include "kernels/host/host_device.h"

namespace gradring::comm {
namespace {

class SingleRankGroup : public testing::Test {
 protected:
  kernels::HostDevice device_;
  ProcessGroup group_{make_single_rank_transport(device_), make_single_rank_transport(device_),
                      std::chrono::seconds(10)};
};

TEST_F(SingleRankGroup, CollectivesAreTheIdentity) {
  const auto segment = group_.allocate(5 * sizeof(float));
  ASSERT_EQ(segment->size(), 5 * sizeof(float));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(segment->as<float>()[i], 0) << "memory comes zeroed";
    segment->as<float>()[i] = static_cast<float>(i);
  }
  const auto stream = device_.make_stream(kernels::StreamMode::asynchronous);
  const SegmentRange range{.segment = segment.get(), .slice = {0, 5}};
  group_.all_reduce(range, *stream);
  group_.reduce_scatter(range, *stream);
  group_.all_gather(range, *stream);
  group_.broadcast(range, 0, *stream);
  group_.barrier(*stream);
  stream->synchronize(Deadline::after(std::chrono::seconds(10)));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(segment->as<float>()[i], static_cast<float>(i));
}

TEST_F(SingleRankGroup, HostHelpersAreTheIdentity) {
  std::vector<double> values = {1.5, -2};
  group_.all_reduce_on_host(values);
  EXPECT_EQ(values, (std::vector<double>{1.5, -2}));
  EXPECT_EQ(group_.broadcast_on_host("text", 0), "text");
  group_.barrier_on_host();
}

TEST(SingleRankTransport, RejectsAStepWithMoves) {
  kernels::HostDevice device;
  const auto transport = make_single_rank_transport(device);
  const Step step{
      .range = {}, .moves = {Move{.kind = Move::Kind::send, .peer = 1, .slice = {}}}, .operation = "all_reduce"};
  EXPECT_THROW(transport->enqueue(step), InvalidArgument);
}

}  // namespace
}  // namespace gradring::comm
