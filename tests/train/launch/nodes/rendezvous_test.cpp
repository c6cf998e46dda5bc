// SPDX-License-Identifier: Apache-2.0
// How agents dial their leader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <string>

#include "comm/sockets/socket_address.h"
#include "train/launch/nodes/rendezvous.h"
#include "train/launch/nodes/token.h"
#include "train/launch/workers/host.h"

namespace gradring::train {
namespace {

using comm::tcp::SocketAddress;

TEST(DialLeader, WaitsForAnAnswerUntilTheDeadlineWithoutAToken) {
  // The queue of this listener is full: it does not answer the next connection.
  const UniqueFd listener = comm::tcp::listen_at(SocketAddress("127.0.0.1", 0), 0);
  const SocketAddress address = SocketAddress::of(listener);
  const UniqueFd queued = comm::tcp::begin_connect(address);
  pollfd connected = {queued.get(), POLLOUT, 0};
  ASSERT_EQ(::poll(&connected, 1, 5000), 1);

  Reasons reasons;
  const auto deadline = Deadline::after(std::chrono::milliseconds(300));
  EXPECT_FALSE(dial_leader("127.0.0.1", address.port(), {}, deadline, reasons));
  EXPECT_THAT(reasons.text(), testing::HasSubstr("no answer in time"));
  EXPECT_TRUE(deadline.passed()) << "the end of a nap is not the deadline";
}

/// A leader that was suspended before it answered: connections to it succeed.
TEST(DialLeader, TellsASilentLeaderFromOneThatIsNotThere) {
  const UniqueFd listener = comm::tcp::listen_at(SocketAddress("127.0.0.1", 0), 8);
  const std::uint16_t port = SocketAddress::of(listener).port();
  const auto self = identity_of({.run_id = "r", .token = "t"}, AgentRole::follower);
  const auto deadline = [] { return Deadline::after(std::chrono::milliseconds(200)); };
  Reasons reasons;
  EXPECT_FALSE(dial_leader("127.0.0.1", port, self, deadline(), reasons));
  EXPECT_EQ(reasons.text(),
            SocketAddress("127.0.0.1", port).to_string() + ": a process listens there, but does not answer");
  Reasons others;
  EXPECT_FALSE(dial_leader("127.0.0.1", free_tcp_port(), self, deadline(), others));
  EXPECT_THAT(others.text(), testing::HasSubstr(": Connection refused"));
  EXPECT_FALSE(dial_leader("no..host", port, self, deadline(), others));
  EXPECT_FALSE(dial_leader("no..host", port, self, deadline(), others));
  EXPECT_THAT(others.text(),
              testing::MatchesRegex(".*: Connection refused, cannot resolve the host name 'no..host': .*"));
  EXPECT_EQ(others.text().find("no..host"), others.text().rfind("no..host")) << "each reason once";
}

}  // namespace
}  // namespace gradring::train
