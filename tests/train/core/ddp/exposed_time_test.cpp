// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "comm/groups.h"
#include "kernels/host/host_device.h"
#include "nn/models/model.h"
#include "nn/program/program.h"
#include "tests/support/test_clock.h"
#include "train/core/ddp/distributed_data_parallel.h"

namespace gradring::train {
namespace {

using namespace std::chrono_literals;
using tests::TestClock;

TEST(ExposedTime, LeavesOutTimeInWhichTheProcessWasStopped) {
  const TestClock clock;
  comm::InProcessHub hub(1, 1min);
  const auto group = hub.join(0);
  kernels::HostDevice device;
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  const nn::Model model = nn::convnet({28, 28, 1}, 10);
  const std::vector<std::vector<int>> one_bucket = {nn::Program::ready_order(model)};
  const nn::ArenaLayout layout(nn::parameters_of(model), one_bucket, 1);
  DistributedDataParallel ddp(*group, layout, device, *stream);
  ddp.enqueue_in_line([](kernels::Stream& communication) {
    communication.enqueue([] {
      TestClock::pass(200ms);
      TestClock::stop_for(1h);
      TestClock::pass(50ms);
    });
  });
  ddp.enqueue_end_of_step();
  EXPECT_EQ(ddp.exposed(), 200ms + RunningClock::kLongestGap) << "an hour's gap counts as little as any long one";
}

}  // namespace
}  // namespace gradring::train
