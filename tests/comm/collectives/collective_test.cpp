// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/collective.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/collectives/schedules.h"
#include "comm/host_channel.h"
#include "comm/process_group.h"
#include "comm/transport/error.h"
#include "kernels/host/host_device.h"

namespace gradring::comm {
namespace {

class PlainSegment final : public Segment {
 public:
  explicit PlainSegment(std::vector<std::byte>& bytes) : Segment(bytes.data(), bytes.size(), 1) {}
};

/// A transport that records posted steps and returns scripted results from poll, like that of a GPU or a simulator.
class ScriptedTransport final : public Transport {
 public:
  int rank() const override { return 1; }
  int world_size() const override { return 3; }
  std::unique_ptr<Segment> allocate(std::size_t bytes, Deadline) override {
    memory_.resize(memory_.size() + 1);
    memory_.back().resize(bytes);
    return std::make_unique<PlainSegment>(memory_.back());
  }
  void submit(kernels::Stream&, std::function<void()> collective) override { collective(); }
  void enqueue(const Step& step) override { posted.push_back(step); }
  Progress poll() override {
    if (const auto once = std::exchange(on_poll, nullptr)) once();
    if (script.empty()) return Progress::done;
    const Progress progress = script.front();
    script.pop_front();
    return progress;
  }
  void wait(Deadline) override { ++waits; }
  void share_failure(FirstFailure&) override {}

  std::vector<Step> posted;
  std::deque<Progress> script;
  std::function<void()> on_poll;
  int waits = 0;

 private:
  std::deque<std::vector<std::byte>> memory_;
};

Collective all_reduce_on(ScriptedTransport& transport) {
  return Collective({.schedule = &kRingAllReduce, .range = {.slice = {0, 30}}, .number = 7}, transport);
}

TEST(Collective, PostsAllStepsWithoutWaitingIfPollReturnsDone) {
  ScriptedTransport transport;
  Collective collective = all_reduce_on(transport);
  drive(collective, transport, Deadline::after(std::chrono::seconds(60)));
  EXPECT_EQ(transport.waits, 0);
  ASSERT_EQ(transport.posted.size(), 4u);
  for (std::size_t index = 0; index < 4; ++index) {
    EXPECT_EQ(transport.posted[index].index, index);
    EXPECT_EQ(transport.posted[index].collective, 7u);
    EXPECT_EQ(transport.posted[index].operation, "all_reduce");
    EXPECT_EQ(transport.posted[index].moves, kRingAllReduce.step({.rank = 1, .world = 3, .elements = 30}, index));
  }
}

TEST(Collective, ResumesAfterPendingProgress) {
  ScriptedTransport transport;
  transport.script = {Progress::pending, Progress::pending, Progress::received, Progress::pending};
  Collective collective = all_reduce_on(transport);
  EXPECT_FALSE(collective.advance());
  EXPECT_FALSE(collective.advance());
  EXPECT_EQ(transport.posted.size(), 1u);
  EXPECT_FALSE(collective.advance());
  EXPECT_EQ(transport.posted.size(), 2u) << "the first step was received";
  EXPECT_TRUE(collective.advance());
  EXPECT_EQ(transport.posted.size(), 4u);
}

TEST(Collective, IsDoneOnlyAfterProgressDone) {
  ScriptedTransport transport;
  transport.script = {Progress::done, Progress::done, Progress::done, Progress::received, Progress::received};
  Collective collective = all_reduce_on(transport);
  EXPECT_FALSE(collective.advance());
  EXPECT_FALSE(collective.advance());
  EXPECT_TRUE(collective.advance());
}

TEST(Collective, RejectsConcurrentUseOnTwoStreams) {
  auto owned = std::make_unique<ScriptedTransport>();
  ScriptedTransport& data = *owned;
  ProcessGroup group(std::move(owned), std::make_unique<ScriptedTransport>(), std::chrono::seconds(60));
  kernels::HostDevice device;
  const auto one = device.make_stream(kernels::StreamMode::in_place);
  const auto other = device.make_stream(kernels::StreamMode::in_place);
  const auto segment = group.allocate(64);
  bool refused = false;
  data.on_poll = [&] {
    EXPECT_THROW(group.barrier(*other), InvalidArgument);
    refused = true;
  };
  group.all_reduce({.segment = segment.get(), .slice = {0, 16}}, *one);
  EXPECT_TRUE(refused);
  group.barrier(*other);  // allowed after the first collective has ended
}

std::vector<Algorithm> algorithms_of(const std::vector<Step>& steps) {
  std::vector<Algorithm> algorithms;
  for (const Step& step : steps) algorithms.push_back(step.algorithm);
  return algorithms;
}

TEST(HostChannel, TakesLogarithmicallyManySteps) {
  auto owned = std::make_unique<ScriptedTransport>();
  std::vector<Step>& posted = owned->posted;
  HostChannel channel(std::move(owned), std::chrono::seconds(60));
  channel.all_gather(std::as_bytes(std::span("a")));
  EXPECT_EQ(algorithms_of(posted), std::vector(3, Algorithm::doubling));
  posted.clear();
  channel.broadcast_text("text", 1);  // its length, then the text
  EXPECT_EQ(algorithms_of(posted), std::vector(6, Algorithm::tree));
  posted.clear();
  channel.barrier();
  EXPECT_EQ(algorithms_of(posted), std::vector(2, Algorithm::dissemination));
}

}  // namespace
}  // namespace gradring::comm
