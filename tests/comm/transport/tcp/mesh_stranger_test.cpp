// SPDX-License-Identifier: Apache-2.0
// Who else may stand at the door, or behind it.
#include "comm/transport/tcp/mesh.h"

#include <gmock/gmock.h>

#include "comm/transport/tcp/run_token.h"
#include "tests/comm/transport/tcp/meeting.h"

namespace gradring::comm::tcp {
namespace {

using ::testing::HasSubstr;
using tests::announce;
using tests::contact_in;
using tests::expect_connected;
using tests::join;
using tests::Joined;
using tests::kLong;
using tests::knock;
using tests::kShort;
using tests::say;
using tests::spec_of;

TEST(TcpMesh, StrangersAtTheDoorDoNotDisturb) {
  MemoryStore store;
  Joined zero;
  std::thread thread([&] { zero = join(store, spec_of(0, 2)); });
  announce(store, spec_of(1, 2));
  std::vector<UniqueFd> strangers;
  const auto let_in = [&](const std::string& bytes) {
    strangers.push_back(knock(store, 0));
    say(strangers.back(), bytes);
  };
  let_in("GET / HTTP/1.1\r\n\r\n" + std::string(5000, 'x'));  // garbage, and more than is read
  let_in(std::string(200, '\xff'));
  for (int i = 0; i < 100; ++i) let_in("GRADRING");  // half a greeting, then silence: more than may stand there
  strangers.push_back(knock(store, 0));              // not a word
  strangers.push_back(knock(store, 0));
  strangers.back().reset();  // hangs up
  expect_connected(join(store, spec_of(1, 2)), 0);
  thread.join();
  expect_connected(zero, 1);
}

TEST(TcpMesh, ARankWithAnotherTokenGetsNoFurther) {
  MemoryStore store;
  Joined zero;
  std::thread thread([&] { zero = join(store, spec_of(0, 2), kShort); });
  announce(store, spec_of(1, 2));
  MemoryStore others;  // as the store of another run that has got hold of the address
  Contact contact = contact_in(store, 0);
  contact.token = RunToken::draw().to_text();
  others.set("tcp/test/0", contact.to_text());
  const Joined one = join(others, spec_of(1, 2));
  EXPECT_THAT(one.error, HasSubstr("PeerLost: what answers rank 1"));
  EXPECT_EQ(one.blamed, 0);
  thread.join();
  EXPECT_THAT(zero.error, HasSubstr("Timeout")) << "the true rank 1 never came";
  EXPECT_EQ(zero.blamed, 1);
}

TEST(TcpMesh, ARankThatHasEndedMeanwhileIsNamedAtOnce) {
  MemoryStore store;
  UniqueFd listener = listen_at(SocketAddress("127.0.0.1", 0), 1);
  const SocketAddress left = SocketAddress::of(listener);
  listener.reset();
  store.set("tcp/test/0", contact_of_this_process(spec_of(0, 2), left).to_text());
  const Joined one = join(store, spec_of(1, 2));
  EXPECT_THAT(one.error, HasSubstr("PeerLost: nobody listens at 127.0.0.1:"));
  EXPECT_EQ(one.blamed, 0);
}

TEST(TcpMesh, AnImpostorOnThePortOfARankIsFoundOut) {
  MemoryStore store;
  const UniqueFd listener = listen_at(SocketAddress("127.0.0.1", 0), 1);
  store.set("tcp/test/0", contact_of_this_process(spec_of(0, 2), SocketAddress::of(listener)).to_text());
  Joined one;
  std::thread thread([&] { one = join(store, spec_of(1, 2)); });
  UniqueFd socket;
  while (!(socket = accept_one(listener))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  say(socket, std::string(500, 'x'));
  thread.join();
  EXPECT_THAT(one.error, HasSubstr("is not rank 0 of this run"));
}

TEST(TcpMesh, ADoorThatIsShutInItsFaceIsTriedAgain) {
  MemoryStore store;
  const UniqueFd listener = listen_at(SocketAddress("127.0.0.1", 0), 8);
  store.set("tcp/test/0", contact_of_this_process(spec_of(0, 2), SocketAddress::of(listener)).to_text());
  Joined one;
  std::thread thread([&] { one = join(store, spec_of(1, 2), kLong); });
  for (int times = 0; times < 3;)  // as if too many strangers stood there
    if (const UniqueFd dropped = accept_one(listener)) ++times;
  UniqueFd socket;
  while (!(socket = accept_one(listener))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  say(socket, std::string(500, 'x'));
  thread.join();
  EXPECT_THAT(one.error, HasSubstr("is not rank 0 of this run")) << "it came back until somebody answered";
}

}  // namespace
}  // namespace gradring::comm::tcp
