// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/branch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/host/host_device.h"
#include "tests/support/each_stream.h"

namespace gradring::kernels {
namespace {

using testing::ElementsAre;

class BranchOfAStream : public testing::Test {
 protected:
  std::function<void()> note(const char* what) {
    return [this, what] {
      const std::lock_guard lock(mutex_);
      done_.emplace_back(what);
    };
  }

  std::mutex mutex_;
  std::vector<std::string> done_;
  HostDevice device_;
  std::unique_ptr<Stream> stream_ = device_.make_stream(StreamMode::asynchronous);
  Branch branch_{device_};
};

TEST_F(BranchOfAStream, RunsBesideWhatFollowsUntilTheJoin) {
  std::promise<void> followed;
  stream_->enqueue(note("before"));
  branch_.fork(*stream_).enqueue([&] {
    const bool ran_beside = followed.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready;
    note(ran_beside ? "branch" : "the stream waited for the branch")();
  });
  stream_->enqueue(note("beside"));
  stream_->enqueue([&] { followed.set_value(); });
  branch_.join(*stream_);
  stream_->enqueue(note("after"));
  tests::finish(*stream_);
  EXPECT_THAT(done_, ElementsAre("before", "beside", "branch", "after"));
}

TEST_F(BranchOfAStream, IsNotWaitedForIfItWasNotForked) {
  branch_.join(*stream_);
  stream_->enqueue(note("stream"));
  tests::finish(*stream_);
  EXPECT_THAT(done_, ElementsAre("stream"));
}

TEST_F(BranchOfAStream, BesideReturnsTheStreamWithoutABranch) {
  EXPECT_EQ(&beside(*stream_, nullptr), stream_.get());
  EXPECT_NE(&beside(*stream_, &branch_), stream_.get());
  branch_.join(*stream_);
  tests::finish(*stream_);
}

TEST_F(BranchOfAStream, ReportsItsLaunchesToTheObserverOfTheStream) {
  LaunchLog log(*stream_);
  EXPECT_EQ(branch_.fork(*stream_).launch_observer(), &log);
  branch_.join(*stream_);
  tests::finish(*stream_);
}

}  // namespace
}  // namespace gradring::kernels
