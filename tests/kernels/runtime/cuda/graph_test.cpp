// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/graph.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "kernels/runtime/cuda/cuda_device.h"
#include "kernels/runtime/cuda/device_count.h"
#include "kernels/runtime/error.h"
#include "kernels/runtime/host/host_device.h"

namespace gradring::kernels {
namespace {

TEST(EmptyGraph, CannotBeEnqueued) {
  HostDevice device;
  const auto stream = device.make_stream(StreamMode::in_place);
  Graph graph;
  EXPECT_THROW(graph.enqueue(*stream), InvalidArgument);
  graph.reset();
}

/// Two ints on the device, 0 and 7, and one pinned, through which the host looks at the first.
class GraphOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why_not = why_no_device(count_devices(), 0);
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    device_ = std::make_unique<CudaDevice>(0);
    stream_ = std::make_unique<CudaStream>(0, std::make_shared<DeviceFailure>());
    value_ = device_->allocate(sizeof(int), MemoryKind::device);
    seven_ = device_->allocate(sizeof(int), MemoryKind::device);
    host_ = device_->allocate(sizeof(int), MemoryKind::pinned);
    *host_.as<int>() = 7;
    stream_->enqueue_copy(seven_.data(), host_.data(), sizeof(int));
    stream_->enqueue_zero(value_.data(), sizeof(int));
    finish();
  }
  void TearDown() override {
    if (stream_) finish();
  }

  void finish() { stream_->synchronize(Deadline::after(std::chrono::seconds(30))); }
  void set_value_to_seven(Stream& stream) { stream.enqueue_copy(value_.data(), seven_.data(), sizeof(int)); }
  int value() {
    stream_->enqueue_copy(host_.data(), value_.data(), sizeof(int));
    finish();
    return *host_.as<int>();
  }

  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<CudaStream> stream_;
  Buffer value_, seven_, host_;
};

TEST_F(GraphOnGpu, IsCapturedWithoutRunningAndThenRunsAgainAndAgain) {
  Graph graph = Graph::capture(*stream_, [&] { set_value_to_seven(*stream_); });
  EXPECT_EQ(value(), 0);
  for (int round = 0; round < 3; ++round) {
    stream_->enqueue_zero(value_.data(), sizeof(int));
    graph.enqueue(*stream_);
    EXPECT_EQ(value(), 7);
  }
}

TEST_F(GraphOnGpu, HoldsTheWorkOfStreamsThatAreJoined) {
  const auto side = device_->make_stream(StreamMode::asynchronous);
  const auto fork = device_->make_event();
  const auto join = device_->make_event();
  Graph graph = Graph::capture(*stream_, [&] {
    stream_->record(*fork);
    side->enqueue_wait(*fork);
    set_value_to_seven(*side);
    side->record(*join);
    stream_->enqueue_wait(*join);
  });
  EXPECT_EQ(value(), 0);
  graph.enqueue(*stream_);
  EXPECT_EQ(value(), 7);
}

TEST_F(GraphOnGpu, RefusesHostWorkAndWaitingAndLeavesTheStreamUsable) {
  EXPECT_THROW(Graph::capture(*stream_, [&] { stream_->enqueue([] {}); }), InvalidArgument);
  EXPECT_THROW(Graph::capture(*stream_, [&] { finish(); }), InvalidArgument);
  EXPECT_THROW(Graph::capture(*stream_, [] { throw std::runtime_error("half way"); }), std::runtime_error);
  set_value_to_seven(*stream_);
  EXPECT_EQ(value(), 7);
}

TEST_F(GraphOnGpu, MayBeDestroyedWhileItRuns) {
  Graph graph = Graph::capture(*stream_, [&] { set_value_to_seven(*stream_); });
  graph.enqueue(*stream_);
  graph.reset();
  EXPECT_EQ(value(), 7);
  EXPECT_THROW(graph.enqueue(*stream_), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels
