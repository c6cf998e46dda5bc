// SPDX-License-Identifier: Apache-2.0
#include "comm/sockets/acceptor.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "comm/sockets/socket_address.h"
#include "kernels/base/descriptor_limit.h"
#include "tests/comm/sockets/recorded_hello.h"
#include "tests/support/no_more_files.h"

namespace gradring::comm::tcp {
namespace {

constexpr auto kAdmitPatience = std::chrono::seconds(20);

/// Of an acceptor at one address.
std::uint16_t port_of(const Acceptor& acceptor) {
  const std::string where = acceptor.where();
  return static_cast<std::uint16_t>(std::stoi(where.substr(where.rfind(':') + 1)));
}

class AcceptorTest : public ::testing::Test {
 protected:
  /// A connection on which `bytes` were sent.
  UniqueFd connect(const std::string& bytes) const {
    UniqueFd socket = begin_connect({"127.0.0.1", port_});
    pollfd connected = {socket.get(), POLLOUT, 0};
    EXPECT_EQ(::poll(&connected, 1, 5000), 1);
    EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
    return socket;
  }
  /// Calls admit() as soon as it is due.
  std::list<Admitted> poll() {
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
  static Identity identity(int rank) { return {rank, 2, RunToken::from_secret("secret")}; }

  Acceptor acceptor_{"127.0.0.1", 0, identity(0), 1};
  const std::uint16_t port_ = port_of(acceptor_);
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

TEST_F(AcceptorTest, AdmitsAllMembersOfALargeWorldAtOnce) {
  constexpr int kMembers = 200;
  const Identity leader{0, kMembers + 1, RunToken::from_secret("secret")};
  Acceptor acceptor("127.0.0.1", 0, leader, kMembers);
  const SocketAddress address("127.0.0.1", port_of(acceptor));
  const auto deadline = Deadline::after(kAdmitPatience);
  std::list<Identity> identities;
  std::list<Handshake> members;
  for (int rank = 1; rank <= kMembers; ++rank) {
    identities.push_back({rank, kMembers + 1, leader.token});
    members.push_back(Handshake::dial(address, identities.back(), 0, deadline));
  }
  std::size_t admitted = 0;
  int polls = 0;
  while (admitted < kMembers && !deadline.passed()) {
    for (Handshake& member : members) member.advance();
    if (acceptor.next_poll()) std::this_thread::sleep_for(acceptor.next_poll()->remaining());
    admitted += acceptor.admit().size();
    if (acceptor.next_poll()) ++polls;  // one that found something
  }
  EXPECT_EQ(admitted, std::size_t{kMembers});
  EXPECT_LT(polls, kMembers / 10) << "each accepts all that fit among the pending connections";
}

TEST_F(AcceptorTest, LetsFewConnectionsWaitInFrontOfAMember) {
  constexpr int kConnections = 600, kPeers = 100'000;
  const Acceptor acceptor("127.0.0.1", 0, {0, kPeers, RunToken::from_secret("secret")}, kPeers);
  std::vector<UniqueFd> connections;
  for (int i = 0; i < kConnections; ++i) connections.push_back(begin_connect({"127.0.0.1", port_of(acceptor)}));
  const auto is_connected = [](const UniqueFd& socket) {
    pollfd connected = {socket.get(), POLLOUT, 0};
    return ::poll(&connected, 1, 0) == 1;
  };
  EXPECT_LT(std::ranges::count_if(connections, is_connected), kConnections);
}

TEST_F(AcceptorTest, AdmitsAMemberBehindSilentConnections) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 30; ++i) silent.push_back(connect(""));
  const Identity self = identity(1);
  const auto deadline = Deadline::after(kAdmitPatience);
  Handshake member = Handshake::dial(connect(""), self, 0, deadline);
  std::list<Admitted> admitted;
  while (admitted.empty() && !deadline.passed()) {
    member.advance();
    admitted = poll();
  }
  EXPECT_EQ(admitted.size(), 1u);
  EXPECT_EQ(member.advance(), Handshake::State::proven);
}

TEST_F(AcceptorTest, KeepsAnAuthenticatedPendingConnection) {
  constexpr int kConnections = 84, kMayRemain = 70;
  const Identity self = identity(1);
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
  std::list<Admitted> admitted;
  while (admitted.empty() && !deadline.passed() && member.advance() == Handshake::State::going) admitted = poll();
  EXPECT_EQ(admitted.size(), 1u);
}

TEST_F(AcceptorTest, ClosesAllButOneConnectionWithTheSameRecordedHello) {
  const std::string hello = tests::recorded_hello(identity(1), 0);
  std::vector<UniqueFd> replays;
  for (int i = 0; i < 3; ++i) replays.push_back(connect(hello));
  EXPECT_TRUE(poll().empty());
  EXPECT_FALSE(is_closed(replays[0]));
  EXPECT_TRUE(is_closed(replays[1]));
  EXPECT_TRUE(is_closed(replays[2]));
}

TEST_F(AcceptorTest, LeavesTheRunTheDescriptorsThatItNeeds) {
  constexpr std::size_t kForTheRun = 20, kOthers = 12, kConnections = 16;
  Acceptor acceptor("127.0.0.1", 0, identity(0), 1, kForTheRun);
  const SocketAddress address("127.0.0.1", port_of(acceptor));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = before.rlim_cur - free_descriptors() + kConnections + kForTheRun + kOthers,
                   .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<UniqueFd> connections;
  for (std::size_t i = 0; i < kConnections; ++i) connections.push_back(begin_connect(address));
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

}  // namespace
}  // namespace gradring::comm::tcp
