// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/node_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "kernels/base/error.h"

namespace gradring::train {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// Both ends of a connection.
class NodeLinks : public ::testing::Test {
 protected:
  NodeLinks() : NodeLinks(connected()) {}

  static std::pair<int, int> connected() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
      throw DeviceError("no pair of sockets");
    return {ends[0], ends[1]};
  }
  explicit NodeLinks(std::pair<int, int> ends) : here_(UniqueFd(ends.first)), there_(UniqueFd(ends.second)) {}

  /// Advances a simulated clock; each second `here_`, and if `both` also `there_`, sends its heartbeat.
  void advance(std::chrono::seconds time, bool both) {
    for (const auto end = now_ + time; now_ < end;) {
      now_ += 1s;
      here_.beat(now_);
      if (both) there_.beat(now_);
    }
  }

  NodeLink here_, there_;
  NodeLink::Clock::time_point now_ = NodeLink::Clock::now();
};

TEST_F(NodeLinks, DeliverMessagesWithoutHeartbeats) {
  advance(3s, true);
  there_.send({{"say", "leave"}});
  advance(1s, true);
  EXPECT_EQ(here_.receive(), std::vector<nlohmann::json>({{{"say", "leave"}}}));
  EXPECT_TRUE(there_.receive().empty());
}

TEST_F(NodeLinks, KeepMessagesBeyondTheRequestedNumber) {
  there_.send({{"say", "join"}});
  there_.send({{"say", "leave"}});
  there_.close("done");
  EXPECT_EQ(here_.receive(1), std::vector<nlohmann::json>({{{"say", "join"}}}));
  EXPECT_EQ(here_.receive(1), std::vector<nlohmann::json>({{{"say", "leave"}}}));
  EXPECT_TRUE(here_.receive().empty());
  EXPECT_FALSE(here_.open());
}

TEST_F(NodeLinks, TellIfThePeerIsSilent) {
  advance(NodeLink::kAgentSilence - 1s, false);
  EXPECT_FALSE(here_.peer_is_silent(now_));
  advance(3s, false);
  EXPECT_TRUE(here_.peer_is_silent(now_));
  EXPECT_TRUE(here_.open()) << "it may continue";
  here_.close_for_silence();
  EXPECT_THAT(here_.reason(), HasSubstr("it sent nothing for 15 s"));
  EXPECT_FALSE(here_.peer_is_silent(now_));
}

/// More than a connection holds that nobody reads.
constexpr int kManyMessages = 20;
void send_many(NodeLink& link) {
  for (int i = 0; i < kManyMessages; ++i) link.send({{"say", "key"}, {"value", std::string(400'000, 'x')}});
}

TEST_F(NodeLinks, DoNotWaitForASlowPeer) {
  send_many(here_);
  EXPECT_TRUE(here_.open()) << here_.reason();
  EXPECT_NE(here_.events().events & POLLOUT, 0);
  std::size_t received = 0;
  for (int turn = 0; turn < 10'000 && received < kManyMessages; ++turn) {
    received += there_.receive().size();
    here_.send_unsent();
  }
  EXPECT_EQ(received, std::size_t{kManyMessages});
  EXPECT_EQ(here_.events().events & POLLOUT, 0);
}

TEST_F(NodeLinks, CloseIfThePeerTakesNothing) {
  send_many(here_);
  const auto stuck = NodeLink::Clock::now();
  here_.beat(stuck + NodeLink::kHostSilence - 1s);
  EXPECT_TRUE(here_.open());
  EXPECT_TRUE(there_.receive().empty()) << "a part of the first message";
  here_.beat(stuck + NodeLink::kHostSilence);
  here_.beat(stuck + 2 * NodeLink::kHostSilence - 1s);
  EXPECT_TRUE(here_.open()) << "it took some of it";
  here_.beat(stuck + 2 * NodeLink::kHostSilence + 1s);
  EXPECT_FALSE(here_.open());
  EXPECT_THAT(here_.reason(), HasSubstr("it accepted no data for 6 s"));
}

TEST_F(NodeLinks, CloseIfThePeerIsFarBehind) {
  const std::string text(NodeLink::kMaxUnsentBytes / 4, 'x');
  for (int i = 0; i < 6; ++i) here_.send({{"say", "key"}, {"value", text}});
  EXPECT_FALSE(here_.open());
  EXPECT_THAT(here_.reason(), HasSubstr("bytes behind"));
}

TEST_F(NodeLinks, WaitForAPausedPeer) {
  there_.pause();
  EXPECT_TRUE(here_.receive().empty());
  advance(60s, false);
  EXPECT_FALSE(here_.peer_is_silent(now_));
  EXPECT_TRUE(there_.receive().empty());  // no heartbeats have queued up
}

TEST_F(NodeLinks, ExpectHeartbeatsAfterAPause) {
  there_.pause();
  there_.send({{"say", "leave"}});
  EXPECT_EQ(here_.receive().size(), 1u);
  advance(NodeLink::kAgentSilence + 3s, false);
  EXPECT_TRUE(here_.peer_is_silent(now_));
}

}  // namespace
}  // namespace gradring::train
