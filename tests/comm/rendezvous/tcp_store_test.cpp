// SPDX-License-Identifier: Apache-2.0
// Ranks of several machines at the store of rank 0, and clients that want to harm it.
#include "comm/rendezvous/tcp_store.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/rendezvous/tcp_store_server.h"
#include "comm/sockets/dial.h"
#include "comm/sockets/resolve.h"
#include "comm/transport/error.h"
#include "tests/comm/rendezvous/served_store.h"
#include "tests/comm/sockets/recorded_hello.h"

namespace gradring::comm {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using tests::identity_of_rank;
using tests::port_of;

constexpr int kWorld = 4;
constexpr auto kLong = 50s;
constexpr auto kShort = 300ms;

Deadline far_off() { return Deadline::after(kLong); }

std::string bytes_of(const StoreRequest& request) { return {reinterpret_cast<const char*>(&request), sizeof request}; }

class TcpStoreTest : public ::testing::Test {
 protected:
  TcpStoreSpec spec(int rank, std::chrono::nanoseconds timeout = kLong) const {
    return tests::client_spec(port_, identity_of_rank(rank, kWorld), timeout);
  }
  /// A connection of rank 1 whose bytes the test sends itself.
  UniqueFd member() const {
    const tcp::Identity self = identity_of_rank(1, kWorld);
    tcp::Reasons reasons;
    auto peer = tcp::dial_first({tcp::SocketAddress("127.0.0.1", static_cast<std::uint16_t>(port_))}, self, 0,
                                {"closed", "rejected"}, far_off(), reasons);
    EXPECT_TRUE(peer) << reasons.text();
    return std::move(peer->socket);
  }
  static void send(const UniqueFd& socket, const std::string& bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t count = ::send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      ASSERT_TRUE(count > 0 || errno == EAGAIN);
      if (count > 0) sent += static_cast<std::size_t>(count);
    }
  }
  static bool closes(const UniqueFd& socket) {
    pollfd end = {socket.get(), POLLRDHUP, 0};
    return ::poll(&end, 1, 20'000) == 1;
  }
  template <class Call>
  static std::string error_of(const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  std::optional<TcpStoreServer> server_{std::in_place, 0, identity_of_rank(0, kWorld)};
  const int port_ = port_of(*server_);
};

TEST_F(TcpStoreTest, GivesAllRanksTheSameEntries) {
  TcpStore one(spec(1)), two(spec(2));
  server_->set("a", "of rank 0");
  one.set("b", "of rank 1");
  EXPECT_EQ(two.get("a"), "of rank 0");
  EXPECT_EQ(two.get("b"), "of rank 1");
  EXPECT_EQ(server_->get("b"), "of rank 1");
  EXPECT_EQ(one.add("count", 2), 2);
  EXPECT_EQ(server_->add("count", 3), 5);
  EXPECT_EQ(two.add("count", -1), 4);
}

TEST_F(TcpStoreTest, WakesWaitsOnEverySide) {
  TcpStore one(spec(1)), two(spec(2));
  std::string seen[2];
  std::thread local([&] { seen[0] = server_->wait("late", far_off()); });
  std::thread remote([&] { seen[1] = one.wait("late", far_off()); });
  EXPECT_THROW(one.get("late"), InvalidArgument) << "a wait does not delay other calls";
  two.set("late", "value");
  local.join();
  remote.join();
  EXPECT_EQ(seen[0], "value");
  EXPECT_EQ(seen[1], "value");
}

TEST_F(TcpStoreTest, WaitsForItsServer) {
  const int port = port_;
  server_.reset();
  std::thread late_server([&] {
    std::this_thread::sleep_for(500ms);
    server_.emplace(port, identity_of_rank(0, kWorld));
  });
  TcpStore one(spec(1));
  one.set("a", "b");
  late_server.join();
  EXPECT_EQ(server_->get("a"), "b");
}

TEST_F(TcpStoreTest, TimeoutNamesRankZeroAndWhatWasTried) {
  server_.reset();
  const auto expect = [&](const TcpStoreSpec& spec, const std::string& where, const std::string& reason) {
    try {
      TcpStore store(spec);
      FAIL() << "connected";
    } catch (const Timeout& error) {
      EXPECT_EQ(error.peer(), 0);
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("rank 1 of 4 waited"), HasSubstr("for rank 0 at " + where), HasSubstr(reason)));
    }
  };
  expect(spec(1, kShort), "127.0.0.1", "Connection refused");
  TcpStoreSpec unresolved = spec(1, kShort);
  unresolved.addresses = [] { return tcp::addresses_of("no..host", 1); };
  unresolved.where = "no..host:1";
  expect(unresolved, "no..host:1", "cannot resolve the host name 'no..host'");
}

TEST_F(TcpStoreTest, RejectsOtherRuns) {
  TcpStoreSpec other = spec(1, 1s);
  other.self.token = tcp::RunToken::from_secret("another");
  EXPECT_THAT(error_of([&] { TcpStore store(other); }), HasSubstr("rank 0 of another run, or of one with another"));
  other = spec(1, 1s);
  other.self.world_size = kWorld + 1;
  EXPECT_THROW(TcpStore store(other), Error);
}

TEST_F(TcpStoreTest, ReportsATakenPort) {
  EXPECT_THROW(TcpStoreServer(port_, identity_of_rank(0, kWorld)), tcp::AddressInUse);
}

/// As at the end of exchange() without a rank.
TEST_F(TcpStoreTest, AnswersUntilRanksHaveReadWhyRankZeroEnds) {
  auto rank = std::async(std::launch::async, [&] {
    TcpStore one(spec(1));
    one.set("ready", "");
    EXPECT_EQ(one.wait("all", far_off()), "without 2");
    std::this_thread::sleep_for(50ms);
    EXPECT_THROW(one.wait("2", Deadline::after({})), Timeout);
  });
  server_->wait("ready", far_off());
  server_->set("all", "without 2");
  server_.reset();
  rank.get();
}

TEST_F(TcpStoreTest, NamesRankZeroWhenItHasEnded) {
  TcpStore one(spec(1));
  std::thread end([&] {
    std::this_thread::sleep_for(100ms);
    server_.reset();
  });
  const auto wait = [&] { one.wait("never", far_off()); };
  EXPECT_THAT(error_of(wait), AllOf(HasSubstr("rank 1 lost the store that rank 0 serves at 127.0.0.1:"),
                                    HasSubstr("it closed the connection")));
  end.join();
  EXPECT_THROW(one.set("a", "b"), PeerLost);
  EXPECT_THROW(one.get("a"), PeerLost);
}

/// The test answers in place of a server.
TEST(TcpStoreClient, TimesOutOnASilentServerAndRejectsInvalidAnswers) {
  const UniqueFd listener = tcp::listen_at(tcp::SocketAddress("127.0.0.1", 0), 8);
  const tcp::Identity zero = identity_of_rank(0, 2);
  const auto serve = [&](const std::string& answer) {
    const int port = tcp::SocketAddress::of(listener).port();
    UniqueFd socket;
    std::thread server([&] {
      pollfd ready = {listener.get(), POLLIN, 0};
      EXPECT_EQ(::poll(&ready, 1, 20'000), 1);
      tcp::Handshake handshake = tcp::Handshake::answer(tcp::accept_one(listener), zero, far_off());
      while (handshake.advance() == tcp::Handshake::State::going) std::this_thread::sleep_for(1ms);
      socket = handshake.release();
      ::send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    });
    TcpStore store(tests::client_spec(port, identity_of_rank(1, 2), 2s));
    server.join();
    store.set("a", "b");
  };
  EXPECT_THROW(serve(""), Timeout);
  EXPECT_THROW(serve("half"), Timeout);
  const StoreAnswer too_long{.status = StoreStatus::ok, .value_bytes = Store::kMaxValueBytes + 1};
  EXPECT_THROW(serve({reinterpret_cast<const char*>(&too_long), sizeof too_long}), PeerLost);
  EXPECT_THROW(serve(std::string(64, '\xff')), PeerLost);
}

TEST_F(TcpStoreTest, PublishesTheAddressOfRankZero) {
  TcpStore one(spec(1)), two(spec(2));
  EXPECT_THROW(server_->wait(TcpStoreServer::kAddressKey, Deadline::after(kShort)), Timeout)
      << "rank 3 may come from another host";
  TcpStore three(spec(3));
  EXPECT_EQ(two.wait(TcpStoreServer::kAddressKey, far_off()), "127.0.0.1");
  EXPECT_EQ(one.own_address(), "127.0.0.1");
}

TEST_F(TcpStoreTest, ClosesConnectionsWithInvalidRequests) {
  const StoreRequest valid{.operation = StoreOperation::set, .key_bytes = 1, .value_bytes = 1};
  std::vector<StoreRequest> requests(6, valid);
  requests[0].operation = static_cast<StoreOperation>(0);
  requests[1].operation = static_cast<StoreOperation>(5);
  requests[2].key_bytes = 0;
  requests[3].key_bytes = Store::kMaxKeyBytes + 1;
  requests[4].value_bytes = 0xffff'ffff;
  requests[5].zero = 1;
  StoreRequest with_value{.operation = StoreOperation::wait, .key_bytes = 1, .value_bytes = 1};
  requests.push_back(with_value);
  for (const StoreRequest& request : requests) {
    const UniqueFd socket = member();
    send(socket, bytes_of(request) + std::string(100, 'x'));
    EXPECT_TRUE(closes(socket));
  }
  TcpStore one(spec(1));
  one.set("a", "b");
  EXPECT_EQ(server_->get("a"), "b");
}

TEST_F(TcpStoreTest, ServesOthersBesideHalfRequestsAndSlowReaders) {
  const UniqueFd half = member(), body = member(), slow = member(), waiting = member();
  send(half, bytes_of({.operation = StoreOperation::set, .key_bytes = 1, .value_bytes = 1}).substr(0, 7));
  send(body, bytes_of({.operation = StoreOperation::set, .key_bytes = 1, .value_bytes = 60'000}) + "k");
  server_->set("large", std::string(Store::kMaxValueBytes, 'x'));
  const std::string get_large = bytes_of({.operation = StoreOperation::wait, .key_bytes = 5}) + "large";
  // Never reads: the server keeps one answer, and the kernel the rest of the requests.
  for (int i = 0; i < 2'000; ++i) ::send(slow.get(), get_large.data(), get_large.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  send(waiting, bytes_of({.operation = StoreOperation::wait, .key_bytes = 1, .number = INT64_MAX}) + "n");
  TcpStore one(spec(2));
  for (int i = 0; i < 20; ++i) {
    one.set("a", std::to_string(i));
    EXPECT_EQ(server_->get("a"), std::to_string(i));
  }
  EXPECT_THROW(server_->get("k"), InvalidArgument);
}

TEST_F(TcpStoreTest, LimitsConnectionsOfARank) {
  std::vector<UniqueFd> sockets;
  for (int i = 0; i < TcpStoreServer::kMaxConnections; ++i) sockets.push_back(member());
  const UniqueFd beyond = member();
  EXPECT_TRUE(closes(beyond));
  TcpStore other(spec(2));
  other.set("a", "b");
  sockets.clear();
  TcpStore one(spec(1));
  EXPECT_EQ(one.get("a"), "b");
}

TEST_F(TcpStoreTest, LimitsEntriesAndBytes) {
  TcpStore one(spec(1));
  const std::string large(Store::kMaxValueBytes, 'x');
  const auto fill = [&] {
    for (std::size_t i = 0; i <= TcpStoreServer::kMaxBytes / large.size(); ++i) one.set(std::to_string(i), large);
  };
  EXPECT_THAT(error_of(fill), HasSubstr("is full"));
  one.set("0", "less");  // replaces
  EXPECT_EQ(one.get("0"), "less");
  for (std::size_t i = 0; i < TcpStoreServer::kMaxBytes / large.size(); ++i) one.remove(std::to_string(i));
  EXPECT_THAT(error_of(fill), HasSubstr("is full")) << "what was removed has room again";
  EXPECT_EQ(one.get("0"), large);
}

TEST_F(TcpStoreTest, JoinsDuringAConnectionFlood) {
  const auto address = tcp::SocketAddress("127.0.0.1", static_cast<std::uint16_t>(port_));
  const std::string hello = tests::recorded_hello(identity_of_rank(1, kWorld), 0);
  std::atomic<bool> ends = false;
  std::vector<std::thread> floods;
  for (const std::string& first : {std::string(), std::string(4096, '\xff'), hello.substr(0, 8), hello})
    floods.emplace_back([&, first] {
      std::vector<UniqueFd> open;
      while (!ends) {
        UniqueFd socket = tcp::begin_connect(address);
        ::send(socket.get(), first.data(), first.size(), MSG_NOSIGNAL);
        open.push_back(std::move(socket));
        if (open.size() > 100) open.erase(open.begin());
        std::this_thread::sleep_for(10ms);
      }
    });
  std::this_thread::sleep_for(100ms);
  {
    TcpStore one(spec(1)), two(spec(2));
    one.set("a", "b");
    EXPECT_EQ(two.wait("a", far_off()), "b");
  }
  ends = true;
  for (std::thread& flood : floods) flood.join();
}

}  // namespace
}  // namespace gradring::comm
