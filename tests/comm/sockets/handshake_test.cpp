// SPDX-License-Identifier: Apache-2.0
#include "comm/sockets/handshake.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "kernels/base/error.h"

namespace gradring::comm::tcp {
namespace {

using State = Handshake::State;

Deadline later() { return Deadline::after(std::chrono::seconds(60)); }

struct HandshakeEnds {
  HandshakeEnds() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    one = UniqueFd(fds[0]);
    other = UniqueFd(fds[1]);
  }
  UniqueFd one;
  UniqueFd other;
};

Identity identity(int rank, const RunToken& token, int world = 4) { return {rank, world, token}; }

/// Advances both sides until neither makes progress.
std::pair<State, State> handshake(Handshake dialler, Handshake listener) {
  State at_dialler = State::going;
  State at_listener = State::going;
  for (int turn = 0; turn < 10; ++turn) {
    at_dialler = dialler.advance();
    at_listener = listener.advance();
    if (at_dialler == State::refused) dialler.release();
    if (at_listener == State::refused) listener.release();
  }
  return {at_dialler, at_listener};
}

std::pair<State, State> handshake(const Identity& dialler, int dialled, const Identity& listener) {
  HandshakeEnds ends;
  return handshake(Handshake::dial(std::move(ends.one), dialler, dialled, later()),
                   Handshake::answer(std::move(ends.other), listener, later()));
}

/// A client that sends `bytes` and listens to the answer.
struct RawClient {
  explicit RawClient(const Identity& listener, Deadline deadline = later())
      : handshake(Handshake::answer(std::move(ends.other), listener, deadline)) {}
  State send(const std::string& bytes) {
    EXPECT_EQ(::send(ends.one.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    return handshake.advance();
  }
  std::string receive() const {
    char buffer[256];
    const ssize_t count = ::recv(ends.one.get(), buffer, sizeof buffer, 0);
    return {buffer, static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
  }
  HandshakeEnds ends;
  Handshake handshake;
};

std::string hello_of_rank_3() {
  const Hello hello{.magic = {'G', 'R', 'A', 'D', 'R', 'I', 'N', 'G'}, .version = 3, .rank = 3, .world_size = 4};
  return {reinterpret_cast<const char*>(&hello), sizeof hello};
}

TEST(TcpHandshake, AuthenticatesTwoRanksOfOneRun) {
  const RunToken token = RunToken::draw();
  HandshakeEnds ends;
  const Identity three = identity(3, token);
  const Identity one = identity(1, token);
  Handshake dialler = Handshake::dial(std::move(ends.one), three, 1, later());
  Handshake listener = Handshake::answer(std::move(ends.other), one, later());
  EXPECT_EQ(dialler.advance(), State::going);
  EXPECT_EQ(listener.advance(), State::going);
  EXPECT_EQ(dialler.advance(), State::going) << "the dialler proves itself first";
  EXPECT_EQ(listener.advance(), State::proven);
  EXPECT_EQ(dialler.advance(), State::proven);
  EXPECT_EQ(dialler.peer(), 1);
  EXPECT_EQ(listener.peer(), 3);
}

TEST(TcpHandshake, RejectsWrongTokenOnBothSides) {
  const auto [dialler, listener] = handshake(identity(3, RunToken::draw()), 1, identity(1, RunToken::draw()));
  EXPECT_EQ(dialler, State::refused);
  EXPECT_EQ(listener, State::refused);
}

TEST(TcpHandshake, SendsNothingThatDependsOnTheTokenBeforeAuthentication) {
  // Two listeners with different tokens send the same bytes, except the nonce.
  const auto received_from = [](const RunToken& token) {
    const Identity listener = identity(1, token);
    RawClient client(listener);
    client.send(hello_of_rank_3());
    std::string received = client.receive();
    EXPECT_EQ(received.size(), sizeof(Hello));
    received.erase(offsetof(Hello, nonce), sizeof(Nonce));
    EXPECT_EQ(client.send(std::string(sizeof(Digest), 'x')), State::refused);
    return received + client.receive();
  };
  EXPECT_EQ(received_from(RunToken::draw()), received_from(RunToken::draw()));
}

TEST(TcpHandshake, KnowsFromTheFirstMessageWhoHasTheToken) {
  const RunToken token = RunToken::draw();
  const Identity listener = identity(1, token);
  const auto is_unauthenticated_after_hello_of = [&](const Identity& dialler) {
    HandshakeEnds ends;
    Handshake there = Handshake::dial(std::move(ends.one), dialler, 1, later());
    Handshake here = Handshake::answer(std::move(ends.other), listener, later());
    EXPECT_FALSE(there.unauthenticated()) << "this side connected";
    EXPECT_TRUE(here.unauthenticated());
    there.advance();
    EXPECT_EQ(here.advance(), State::going);
    return here.unauthenticated();
  };
  EXPECT_FALSE(is_unauthenticated_after_hello_of(identity(3, token)));
  EXPECT_TRUE(is_unauthenticated_after_hello_of(identity(3, RunToken::draw())));
  RawClient client(listener);
  client.send(hello_of_rank_3());
  EXPECT_TRUE(client.handshake.unauthenticated());
}

TEST(TcpHandshake, RejectsAnotherWorldSize) {
  const RunToken token = RunToken::draw();
  EXPECT_EQ(handshake(identity(3, token, 5), 1, identity(1, token, 4)).second, State::refused);
}

TEST(TcpHandshake, RejectsRanksThatMustNotConnect) {
  const RunToken token = RunToken::draw();
  EXPECT_EQ(handshake(identity(0, token), 1, identity(1, token)).second, State::refused);
  EXPECT_EQ(handshake(identity(1, token), 1, identity(1, token)).second, State::refused);
  EXPECT_EQ(handshake(identity(4, token), 1, identity(1, token)).second, State::refused) << "outside the world";
}

TEST(TcpHandshake, DiallerRejectsAnotherRanksAnswer) {
  const RunToken token = RunToken::draw();
  EXPECT_EQ(handshake(identity(3, token), 2, identity(1, token)).first, State::refused);
}

TEST(TcpHandshake, RejectsGarbageWithoutAnAnswer) {
  const Identity listener = identity(1, RunToken::draw());
  RawClient client(listener);
  EXPECT_EQ(client.send("GET / HTTP/1.1\r\n" + std::string(sizeof(Hello), 'x')), State::refused);
  EXPECT_EQ(client.receive(), "");
}

TEST(TcpHandshake, RejectsAnIncompleteHelloAfterTheDeadline) {
  const Identity listener = identity(1, RunToken::draw());
  EXPECT_EQ(RawClient(listener).send("GRADRING"), State::going);
  EXPECT_EQ(RawClient(listener, Deadline::after(std::chrono::nanoseconds(0))).send("GRADRING"), State::refused);
}

TEST(TcpHandshake, RejectsReplayedMessages) {
  const RunToken token = RunToken::draw();
  const Identity listener = identity(1, token);
  const Identity rank = identity(3, token);
  // A man in the middle relays and records the messages of a real rank.
  HandshakeEnds ends;
  Handshake dialler = Handshake::dial(std::move(ends.one), rank, 1, later());
  dialler.advance();
  const auto record = [&] {
    char buffer[256];
    const ssize_t count = ::recv(ends.other.get(), buffer, sizeof buffer, 0);
    return std::string(buffer, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  };
  const auto relay = [&](const std::string& answer) {
    ASSERT_EQ(::send(ends.other.get(), answer.data(), answer.size(), 0), static_cast<ssize_t>(answer.size()));
  };
  const std::string hello = record();
  RawClient first(listener);
  EXPECT_EQ(first.send(hello), State::going);
  relay(first.receive());
  EXPECT_EQ(dialler.advance(), State::going);
  const std::string proof = record();
  EXPECT_EQ(first.send(proof), State::proven);
  relay(first.receive());
  EXPECT_EQ(dialler.advance(), State::proven);

  RawClient second(listener);
  EXPECT_EQ(second.send(hello), State::going);
  EXPECT_EQ(second.send(proof), State::refused);
}

TEST(TcpHandshake, RejectsAnEchoOfTheDiallersProof) {
  HandshakeEnds ends;
  const Identity rank = identity(3, RunToken::draw());
  Handshake dialler = Handshake::dial(std::move(ends.one), rank, 1, later());
  dialler.advance();
  const auto echo = [&](int as_rank) {
    char buffer[256];
    const ssize_t count = ::recv(ends.other.get(), buffer, sizeof buffer, 0);
    if (as_rank >= 0) std::memcpy(buffer + offsetof(Hello, rank), &as_rank, sizeof as_rank);
    EXPECT_EQ(::send(ends.other.get(), buffer, static_cast<std::size_t>(count), 0), count);
    return dialler.advance();
  };
  EXPECT_EQ(echo(1), State::going) << "its own Hello with the same nonce";
  EXPECT_EQ(echo(-1), State::refused) << "its own proof";
}

TEST(TcpHandshake, ReportsAClosedConnection) {
  const Identity listener = identity(1, RunToken::draw());
  RawClient client(listener);
  client.ends.one.reset();
  EXPECT_EQ(client.handshake.advance(), State::closed);
}

TEST(TcpRunToken, RoundTripsThroughText) {
  const RunToken token = RunToken::draw();
  const RunToken again = RunToken::parse(token.to_text());
  EXPECT_TRUE(equal_digests(token.sign("words"), again.sign("words")));
  EXPECT_FALSE(equal_digests(token.sign("words"), token.sign("wordz")));
  EXPECT_FALSE(equal_digests(token.sign("words"), RunToken::draw().sign("words")));
  EXPECT_THROW(RunToken::parse(""), DeviceError);
  EXPECT_THROW(RunToken::parse("-"), DeviceError);
  EXPECT_THROW(RunToken::parse(std::string(64, 'g')), DeviceError);
}

TEST(TcpRunToken, SignsWithHmacSha256) {
  // RFC 4231 has no key of 32 bytes; this digest is Python's hmac.new(bytes(range(32)), b"gradring", "sha256").
  std::string key;
  for (int i = 0; i < 32; ++i) key += (i < 16 ? "0" : "1") + std::string(1, "0123456789abcdef"[i % 16]);
  const Digest digest = RunToken::parse(key).sign("gradring");
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  EXPECT_EQ(text, "0f4d6170514f86c0e486f87d9bca2bb5f70631a13c9a378093c847545f3784d6");
}

TEST(TcpHandshake, TellsWhyAConnectFailsAtOnce) {
  const Identity self = identity(1, RunToken::draw());
  Handshake unreachable = Handshake::dial(SocketAddress("224.0.0.1", 1), self, 0, later());  // multicast: no TCP
  EXPECT_EQ(unreachable.advance(), State::closed);
  EXPECT_EQ(unreachable.error_number(), ENETUNREACH);
}

}  // namespace
}  // namespace gradring::comm::tcp
