// SPDX-License-Identifier: Apache-2.0
// How agents connect: the acceptor of the leader, and dialing it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "comm/transports/tcp/socket_address.h"
#include "kernels/base/descriptor_limit.h"
#include "tests/comm/transports/tcp/recorded_hello.h"
#include "tests/support/no_more_files.h"
#include "train/launch/nodes/rendezvous.h"
#include "train/launch/nodes/token.h"
#include "train/launch/workers/host.h"

namespace gradring::train {
namespace {

using comm::tcp::Handshake;
using comm::tcp::SocketAddress;

constexpr auto kAdmitPatience = std::chrono::seconds(20);

class AcceptorTest : public ::testing::Test {
 protected:
  /// A connection on which `bytes` were sent.
  UniqueFd connect(const std::string& bytes) const {
    UniqueFd socket = comm::tcp::begin_connect({"127.0.0.1", static_cast<std::uint16_t>(port_)});
    pollfd connected = {socket.get(), POLLOUT, 0};
    EXPECT_EQ(::poll(&connected, 1, 5000), 1);
    EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
    return socket;
  }
  /// Calls admit() as soon as it is due.
  std::list<NodeLink> poll() {
    if (acceptor_.next_poll()) std::this_thread::sleep_for(acceptor_.next_poll()->remaining());
    return acceptor_.admit();
  }
  static std::ptrdiff_t closed_among(const std::vector<UniqueFd>& sockets) {
    return std::ranges::count_if(sockets, [](const UniqueFd& socket) {
      pollfd closed = {socket.get(), POLLIN, 0};
      return ::poll(&closed, 1, 0) == 1;
    });
  }

  static bool is_closed(const UniqueFd& socket) {
    pollfd closed = {socket.get(), POLLRDHUP, 0};
    return ::poll(&closed, 1, 0) == 1;
  }

  /// It was accepted.
  void connection_closes_after_garbage(const UniqueFd& socket) {
    const std::string garbage(4096, '\xff');
    ::send(socket.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    const auto deadline = Deadline::after(kAdmitPatience);
    while (!is_closed(socket) && !deadline.passed()) poll();
    EXPECT_TRUE(is_closed(socket));
  }
  comm::tcp::Identity acceptor_identity() const { return identity_of(options_, AgentRole::leader); }

  const int port_ = free_tcp_port();
  const LaunchOptions options_{.run_id = "acceptor", .token = "secret"};
  Acceptor acceptor_{"127.0.0.1", port_, acceptor_identity()};
};

TEST_F(AcceptorTest, LimitsConnectionsPerPoll) {
  EXPECT_TRUE(acceptor_.admit().empty());
  EXPECT_FALSE(acceptor_.next_poll());
  EXPECT_FALSE(acceptor_.fds().empty());

  std::vector<UniqueFd> connections;
  for (int i = 0; i < 6; ++i) connections.push_back(connect(std::string(4096, '\xff')));
  EXPECT_TRUE(poll().empty());
  EXPECT_EQ(closed_among(connections), 4);
  EXPECT_TRUE(acceptor_.next_poll());
  EXPECT_TRUE(acceptor_.fds().empty()) << "connections until then wake nobody";
  EXPECT_TRUE(poll().empty());
  EXPECT_EQ(closed_among(connections), 6);

  EXPECT_TRUE(poll().empty());
  EXPECT_FALSE(acceptor_.next_poll()) << "no connection was pending";
  EXPECT_FALSE(acceptor_.fds().empty());
}

TEST_F(AcceptorTest, AdmitsAMemberBehindSilentConnections) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 30; ++i) silent.push_back(connect(""));
  const auto self = identity_of(options_, AgentRole::follower);
  const auto deadline = Deadline::after(kAdmitPatience);
  Handshake member = Handshake::dial(connect(""), self, 0, deadline);
  std::list<NodeLink> admitted;
  while (admitted.empty() && !deadline.passed()) {
    member.advance();
    admitted = poll();
  }
  EXPECT_EQ(admitted.size(), 1u);
  EXPECT_EQ(member.advance(), Handshake::State::proven);
}

TEST_F(AcceptorTest, KeepsAnAuthenticatedPendingConnection) {
  constexpr int kConnections = 84, kMayRemain = 70;
  const auto self = identity_of(options_, AgentRole::follower);
  const auto deadline = Deadline::after(kAdmitPatience);
  std::vector<UniqueFd> connections;
  Handshake member = Handshake::dial(connect(""), self, 0, deadline);
  member.advance();
  const auto has_answer = [&] {
    pollfd answer = {member.fd(), POLLIN, 0};
    return ::poll(&answer, 1, 0) == 1;
  };
  while (!has_answer() && !deadline.passed()) EXPECT_TRUE(poll().empty());
  for (int i = 0; i < kConnections; ++i) {
    connections.push_back(connect(""));
    if (i % 4 == 3) {
      EXPECT_TRUE(poll().empty());
    }
  }
  while (closed_among(connections) < kConnections - kMayRemain && !deadline.passed()) EXPECT_TRUE(poll().empty());
  std::list<NodeLink> admitted;
  while (admitted.empty() && !deadline.passed() && member.advance() == Handshake::State::going) admitted = poll();
  EXPECT_EQ(admitted.size(), 1u);
}

TEST_F(AcceptorTest, ClosesAllButOneConnectionWithTheSameRecordedHello) {
  const std::string hello = tests::recorded_hello(identity_of(options_, AgentRole::follower), 0);
  std::vector<UniqueFd> replays;
  for (int i = 0; i < 3; ++i) replays.push_back(connect(hello));
  EXPECT_TRUE(poll().empty());
  EXPECT_FALSE(is_closed(replays[0]));
  EXPECT_TRUE(is_closed(replays[1]));
  EXPECT_TRUE(is_closed(replays[2]));
}

TEST_F(AcceptorTest, LeavesTheRunTheDescriptorsThatItNeeds) {
  constexpr std::size_t kForTheRun = 20, kOthers = 12, kConnections = 16;
  const SocketAddress address("127.0.0.1", static_cast<std::uint16_t>(free_tcp_port()));
  Acceptor acceptor(address.host(), address.port(), acceptor_identity(), kForTheRun);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = before.rlim_cur - free_descriptors() + kConnections + kForTheRun + kOthers,
                   .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<UniqueFd> connections;
  for (std::size_t i = 0; i < kConnections; ++i) connections.push_back(comm::tcp::begin_connect(address));
  for (int i = 0; i < 10; ++i) {
    if (acceptor.next_poll()) std::this_thread::sleep_for(acceptor.next_poll()->remaining());
    EXPECT_TRUE(acceptor.admit().empty());
  }
  EXPECT_GE(free_descriptors(), kForTheRun);
  EXPECT_EQ(closed_among(connections), std::ptrdiff_t(kConnections - kOthers)) << "the oldest ones";
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(AcceptorTest, PausesWithoutDescriptors) {
  const UniqueFd connection = connect("");
  {
    const tests::NoMoreFiles none;
    EXPECT_TRUE(poll().empty());
    EXPECT_TRUE(acceptor_.fds().empty()) << "the pending connection wakes nobody until the next poll";
    EXPECT_TRUE(acceptor_.next_poll());
  }
  EXPECT_TRUE(poll().empty());
  EXPECT_FALSE(is_closed(connection));
  connection_closes_after_garbage(connection);
}

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
