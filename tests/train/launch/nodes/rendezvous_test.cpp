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

#include "comm/transport/tcp/socket_address.h"
#include "tests/comm/transport/tcp/recorded_hello.h"
#include "train/launch/host.h"
#include "train/launch/nodes/rendezvous.h"
#include "train/launch/nodes/token.h"

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

  const int port_ = free_tcp_port();
  const LaunchOptions options_{.run_id = "acceptor", .token = "secret"};
  Acceptor acceptor_{"127.0.0.1", port_, identity_of(options_, AgentRole::leader)};
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

TEST(DialLeader, WaitsUntilTheDeadlineWithoutAToken) {
  // The queue of this listener is full: it does not answer the next connection.
  const UniqueFd listener = comm::tcp::listen_at(SocketAddress("127.0.0.1", 0), 0);
  const SocketAddress address = SocketAddress::of(listener);
  const UniqueFd queued = comm::tcp::begin_connect(address);
  pollfd connected = {queued.get(), POLLOUT, 0};
  ASSERT_EQ(::poll(&connected, 1, 5000), 1);

  int attempts = 0;
  const auto no_token = [&]() -> std::optional<comm::tcp::Identity> { return ++attempts, std::nullopt; };
  std::string tried;
  EXPECT_FALSE(dial_leader("127.0.0.1", address.port(), no_token, Deadline::after(std::chrono::seconds(1)), tried));
  EXPECT_THAT(tried, testing::HasSubstr("no answer in time"));
  EXPECT_EQ(attempts, 1) << "the end of a nap is not the deadline";
}

}  // namespace
}  // namespace gradring::train
