// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/tcp/handshake.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "comm/transport/tcp/run_token.h"
#include "kernels/runtime/error.h"

namespace gradring::comm::tcp {
namespace {

using State = Handshake::State;

Deadline later() { return Deadline::after(std::chrono::seconds(60)); }

struct Ends {
  Ends() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    one = UniqueFd(fds[0]);
    other = UniqueFd(fds[1]);
  }
  UniqueFd one;
  UniqueFd other;
};

Identity identity(int rank, const RunToken& token, int world = 4) { return {rank, world, token}; }

/// Lets both go on until neither does.
std::pair<State, State> meet(Handshake dialler, Handshake listener) {
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

std::pair<State, State> meet(const Identity& dialler, int dialled, const Identity& listener) {
  Ends ends;
  return meet(Handshake::dial(std::move(ends.one), dialler, dialled, later()),
              Handshake::answer(std::move(ends.other), listener, later()));
}

/// A stranger that sends `bytes` and listens to the answer.
struct Stranger {
  explicit Stranger(const Identity& listener, Deadline patience = later())
      : handshake(Handshake::answer(std::move(ends.other), listener, patience)) {}
  State say(const std::string& bytes) {
    EXPECT_EQ(::send(ends.one.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    return handshake.advance();
  }
  std::string hear() const {
    char buffer[256];
    const ssize_t count = ::recv(ends.one.get(), buffer, sizeof buffer, 0);
    return {buffer, static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
  }
  Ends ends;
  Handshake handshake;
};

std::string hello_of_rank_3() {
  const Hello hello{.magic = {'G', 'R', 'A', 'D', 'R', 'I', 'N', 'G'}, .version = 2, .rank = 3, .world_size = 4};
  return {reinterpret_cast<const char*>(&hello), sizeof hello};
}

TEST(TcpHandshake, ProvesTwoRanksOfOneRunToEachOther) {
  const RunToken token = RunToken::draw();
  Ends ends;
  const Identity three = identity(3, token);
  const Identity one = identity(1, token);
  Handshake dialler = Handshake::dial(std::move(ends.one), three, 1, later());
  Handshake listener = Handshake::answer(std::move(ends.other), one, later());
  EXPECT_EQ(dialler.advance(), State::going);
  EXPECT_EQ(listener.advance(), State::going);
  EXPECT_EQ(dialler.advance(), State::going) << "it proves itself first";
  EXPECT_EQ(listener.advance(), State::proven);
  EXPECT_EQ(dialler.advance(), State::proven);
  EXPECT_EQ(dialler.peer(), 1);
  EXPECT_EQ(listener.peer(), 3);
}

TEST(TcpHandshake, AnotherTokenIsRefusedByBoth) {
  const auto [dialler, listener] = meet(identity(3, RunToken::draw()), 1, identity(1, RunToken::draw()));
  EXPECT_EQ(dialler, State::refused);
  EXPECT_EQ(listener, State::refused);
}

TEST(TcpHandshake, AStrangerGetsNothingThatDependsOnTheToken) {
  // The same words from two listeners with different tokens, but for the nonce.
  const auto heard_from = [](const RunToken& token) {
    const Identity listener = identity(1, token);
    Stranger stranger(listener);
    stranger.say(hello_of_rank_3());
    std::string heard = stranger.hear();
    EXPECT_EQ(heard.size(), sizeof(Hello));
    heard.resize(offsetof(Hello, nonce));
    EXPECT_EQ(stranger.say(std::string(sizeof(Digest), 'x')), State::refused);
    return heard + stranger.hear();
  };
  EXPECT_EQ(heard_from(RunToken::draw()), heard_from(RunToken::draw()));
}

TEST(TcpHandshake, AnotherWorldIsRefused) {
  const RunToken token = RunToken::draw();
  EXPECT_EQ(meet(identity(3, token, 5), 1, identity(1, token, 4)).second, State::refused);
}

TEST(TcpHandshake, ARankThatShouldBeDialledIsRefused) {
  const RunToken token = RunToken::draw();
  EXPECT_EQ(meet(identity(0, token), 1, identity(1, token)).second, State::refused);
  EXPECT_EQ(meet(identity(1, token), 1, identity(1, token)).second, State::refused);
  EXPECT_EQ(meet(identity(4, token), 1, identity(1, token)).second, State::refused) << "outside the world";
}

TEST(TcpHandshake, ADiallerNoticesThatAnotherRankAnswers) {
  const RunToken token = RunToken::draw();
  EXPECT_EQ(meet(identity(3, token), 2, identity(1, token)).first, State::refused);
}

TEST(TcpHandshake, GarbageIsRefusedWithoutAWord) {
  const Identity listener = identity(1, RunToken::draw());
  Stranger stranger(listener);
  EXPECT_EQ(stranger.say("GET / HTTP/1.1\r\nHost: example.org\r\nAccept: text/plain\r\n\r\n"), State::refused);
  EXPECT_EQ(stranger.hear(), "");
}

TEST(TcpHandshake, HalfAHelloIsWaitedForAndThenRefused) {
  const Identity listener = identity(1, RunToken::draw());
  EXPECT_EQ(Stranger(listener).say("GRADRING"), State::going);
  EXPECT_EQ(Stranger(listener, Deadline::after(std::chrono::nanoseconds(0))).say("GRADRING"), State::refused);
}

TEST(TcpHandshake, WhatWasOverheardCannotBePlayedBack) {
  const RunToken token = RunToken::draw();
  const Identity listener = identity(1, token);
  const Identity rank = identity(3, token);
  // A man in the middle carries a true rank's words to the listener, and keeps them.
  Ends ends;
  Handshake dialler = Handshake::dial(std::move(ends.one), rank, 1, later());
  dialler.advance();
  const auto overhear = [&] {
    char buffer[256];
    const ssize_t count = ::recv(ends.other.get(), buffer, sizeof buffer, 0);
    return std::string(buffer, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  };
  const auto pass_on = [&](const std::string& answer) {
    ASSERT_EQ(::send(ends.other.get(), answer.data(), answer.size(), 0), static_cast<ssize_t>(answer.size()));
  };
  const std::string hello = overhear();
  Stranger first(listener);
  EXPECT_EQ(first.say(hello), State::going);
  pass_on(first.hear());
  EXPECT_EQ(dialler.advance(), State::going);
  const std::string proof = overhear();
  EXPECT_EQ(first.say(proof), State::proven);
  pass_on(first.hear());
  EXPECT_EQ(dialler.advance(), State::proven);

  Stranger second(listener);
  EXPECT_EQ(second.say(hello), State::going);
  EXPECT_EQ(second.say(proof), State::refused);
}

TEST(TcpHandshake, AnEchoOfTheDiallerProvesNothing) {
  Ends ends;
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
  EXPECT_EQ(echo(1), State::going) << "its Hello, and the same nonce";
  EXPECT_EQ(echo(-1), State::refused) << "its own proof";
}

TEST(TcpHandshake, APeerThatHangsUpIsClosed) {
  const Identity listener = identity(1, RunToken::draw());
  Stranger stranger(listener);
  stranger.ends.one.reset();
  EXPECT_EQ(stranger.handshake.advance(), State::closed);
}

TEST(TcpRunToken, ComesBackFromItsText) {
  const RunToken token = RunToken::draw();
  const RunToken again = RunToken::parse(token.to_text());
  EXPECT_TRUE(equal_digests(token.sign("words"), again.sign("words")));
  EXPECT_FALSE(equal_digests(token.sign("words"), token.sign("wordz")));
  EXPECT_FALSE(equal_digests(token.sign("words"), RunToken::draw().sign("words")));
  EXPECT_THROW(RunToken::parse(""), DeviceError);
  EXPECT_THROW(RunToken::parse("-"), DeviceError);
  EXPECT_THROW(RunToken::parse(std::string(64, 'g')), DeviceError);
}

TEST(TcpRunToken, SignsAsTheStandardSays) {
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

}  // namespace
}  // namespace gradring::comm::tcp
