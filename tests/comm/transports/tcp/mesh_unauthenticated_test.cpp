// SPDX-License-Identifier: Apache-2.0
// Unauthenticated connections to a rank that joins, and impostors on a rank's port.
#include "comm/transports/tcp/mesh.h"

#include <gmock/gmock.h>
#include <poll.h>

#include "comm/sockets/handshake.h"
#include "tests/comm/sockets/recorded_hello.h"
#include "tests/comm/transports/tcp/rendezvous_helpers.h"

namespace gradring::comm::tcp {
namespace {

using ::testing::HasSubstr;
using tests::connect_to;
using tests::endpoint_in;
using tests::expect_connected;
using tests::join;
using tests::Joined;
using tests::kLong;
using tests::publish_endpoint;
using tests::publish_rank_0;
using tests::send_text;
using tests::spec_of;

/// Timeout of rank 0 whose peer does not authenticate: long enough for the peer to connect, also on an emulated CPU.
constexpr std::chrono::seconds kListenTime(3);

TEST(TcpMesh, IgnoresUnauthenticatedConnections) {
  MemoryStore store;
  Joined zero;
  std::thread thread([&] { zero = join(store, spec_of(0, 2)); });
  publish_endpoint(store, spec_of(1, 2));
  std::vector<UniqueFd> clients;
  const auto connect_and_send = [&](const std::string& bytes) {
    clients.push_back(connect_to(store, 0));
    send_text(clients.back(), bytes);
  };
  connect_and_send("GET / HTTP/1.1\r\n\r\n" + std::string(5000, 'x'));  // garbage, more than is read
  connect_and_send(std::string(200, '\xff'));
  for (int i = 0; i < 100; ++i) connect_and_send("GRADRING");  // partial Hellos, more than the limit
  clients.push_back(connect_to(store, 0));                     // silent
  clients.push_back(connect_to(store, 0));
  clients.back().reset();  // closed
  expect_connected(join(store, spec_of(1, 2)), 0);
  thread.join();
  expect_connected(zero, 1);
}

bool is_ready(int fd, short events, std::chrono::milliseconds timeout) {
  pollfd ready{.fd = fd, .events = events, .revents = 0};
  return ::poll(&ready, 1, static_cast<int>(timeout.count())) == 1;
}

bool is_readable(int fd, std::chrono::milliseconds timeout) { return is_ready(fd, POLLIN, timeout); }

TEST(TcpMesh, KeepsASlowRankDuringAConnectionFlood) {
  constexpr int kClients = 300, kMayStay = 100;
  MemoryStore store;
  Joined zero;
  std::jthread thread([&] { zero = join(store, spec_of(0, 2)); });
  const Identity one{.rank = 1, .world_size = 2, .token = RunToken::parse(endpoint_in(store, 0).token)};
  Handshake slow = Handshake::dial(connect_to(store, 0), one, 0, Deadline::after(kLong));
  ASSERT_TRUE(is_ready(slow.fd(), POLLOUT, kLong)) << "not connected";
  EXPECT_EQ(slow.advance(), Handshake::State::going);  // sends the Hello; rank 0 does not accept yet
  publish_endpoint(store, spec_of(1, 2));              // now it does, and answers
  ASSERT_TRUE(is_readable(slow.fd(), kLong)) << "rank 0 has not answered the Hello";
  std::vector<UniqueFd> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(connect_to(store, 0));
    send_text(clients.back(), "GRADRING");
  }
  // The oldest unauthenticated connections are dropped.
  for (int i = 0; i < kClients - kMayStay; ++i)
    EXPECT_TRUE(is_readable(clients[static_cast<std::size_t>(i)].get(), kLong)) << "client " << i;
  Handshake::State state = slow.advance();
  while (state == Handshake::State::going && is_readable(slow.fd(), kLong)) state = slow.advance();
  EXPECT_EQ(state, Handshake::State::proven);
  if (state != Handshake::State::proven) join(store, spec_of(1, 2));  // so that rank 0 returns
  thread.join();
  expect_connected(zero, 1);
}

bool is_closed(const UniqueFd& socket, std::chrono::milliseconds timeout) {
  pollfd closed{.fd = socket.get(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&closed, 1, static_cast<int>(timeout.count())) == 1;
}

TEST(TcpMesh, ClosesAllButOneConnectionWithTheSameRecordedHello) {
  MemoryStore store;
  Joined zero;
  std::thread thread([&] { zero = join(store, spec_of(0, 2)); });
  publish_endpoint(store, spec_of(1, 2));
  const Identity one{.rank = 1, .world_size = 2, .token = RunToken::parse(endpoint_in(store, 0).token)};
  const std::string hello = tests::recorded_hello(one, 0);
  std::vector<UniqueFd> replays;
  for (int i = 0; i < 3; ++i) {
    replays.push_back(connect_to(store, 0));
    send_text(replays.back(), hello);
  }
  EXPECT_TRUE(is_closed(replays[1], kLong));
  EXPECT_TRUE(is_closed(replays[2], kLong));
  EXPECT_FALSE(is_closed(replays[0], std::chrono::milliseconds(0))) << "the first may belong to the rank itself";
  expect_connected(join(store, spec_of(1, 2)), 0);
  thread.join();
  expect_connected(zero, 1);
}

TEST(TcpMesh, RejectsWrongToken) {
  MemoryStore store;
  Joined zero;
  std::thread thread([&] { zero = join(store, spec_of(0, 2), kListenTime); });
  publish_endpoint(store, spec_of(1, 2));
  MemoryStore others;  // like the store of another run that has learned the address
  Endpoint endpoint = endpoint_in(store, 0);
  endpoint.token = RunToken::draw().to_text();
  publish_rank_0(others, endpoint);
  const Joined one = join(others, spec_of(1, 2));
  EXPECT_THAT(one.error, HasSubstr("PeerLost: rank 1 reached a program at 127.0.0.1:"));
  EXPECT_EQ(one.failed_rank, 0);
  thread.join();
  EXPECT_THAT(zero.error, HasSubstr("Timeout")) << "the real rank 1 never joined";
  EXPECT_EQ(zero.failed_rank, 1);
}

TEST(TcpMesh, UsesAGivenToken) {
  for (const char digit : {'a', 'b'}) {
    MemoryStore store;
    TcpGroupOptions zero = spec_of(0, 2), one = spec_of(1, 2);
    zero.token = std::string(64, 'a');
    one.token = std::string(64, digit);
    Joined first;
    std::thread thread([&] { first = join(store, zero, digit == 'a' ? kLong : kListenTime); });
    const Joined second = join(store, one);
    thread.join();
    EXPECT_EQ(endpoint_in(store, 0).token, "-") << "the token is not in the store";
    if (digit == 'a')
      EXPECT_EQ(first.error + second.error, "");
    else
      EXPECT_THAT(second.error, HasSubstr("is not rank 0 of this run"));
  }
}

TEST(TcpMesh, NamesARankThatHasEnded) {
  MemoryStore store;
  UniqueFd listener = listen_at(SocketAddress("127.0.0.1", 0), 1);
  const SocketAddress left = SocketAddress::of(listener);
  listener.reset();
  publish_rank_0(store, local_endpoint(spec_of(0, 2), left));
  const Joined one = join(store, spec_of(1, 2));
  EXPECT_THAT(one.error, HasSubstr("PeerLost: rank 1 cannot connect to 127.0.0.1:"));
  EXPECT_EQ(one.failed_rank, 0);
}

TEST(TcpMesh, RejectsAnImpostorOnARanksPort) {
  MemoryStore store;
  const UniqueFd listener = listen_at(SocketAddress("127.0.0.1", 0), 1);
  publish_rank_0(store, local_endpoint(spec_of(0, 2), SocketAddress::of(listener)));
  Joined one;
  std::thread thread([&] { one = join(store, spec_of(1, 2)); });
  UniqueFd socket;
  while (!(socket = accept_one(listener))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  send_text(socket, std::string(500, 'x'));
  thread.join();
  EXPECT_THAT(one.error, HasSubstr("is not rank 0 of this run"));
}

TEST(TcpMesh, ReconnectsAfterAClosedConnection) {
  MemoryStore store;
  const UniqueFd listener = listen_at(SocketAddress("127.0.0.1", 0), 8);
  publish_rank_0(store, local_endpoint(spec_of(0, 2), SocketAddress::of(listener)));
  Joined one;
  std::thread thread([&] { one = join(store, spec_of(1, 2), kLong); });
  for (int times = 0; times < 3;)  // as if too many clients stood there
    if (const UniqueFd dropped = accept_one(listener)) ++times;
  UniqueFd socket;
  while (!(socket = accept_one(listener))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  send_text(socket, std::string(500, 'x'));
  thread.join();
  EXPECT_THAT(one.error, HasSubstr("is not rank 0 of this run")) << "it reconnects until a program answers";
}

}  // namespace
}  // namespace gradring::comm::tcp
