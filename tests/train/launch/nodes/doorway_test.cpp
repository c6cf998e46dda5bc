// SPDX-License-Identifier: Apache-2.0
// The leader's door: how many are answered at a look, and when it is looked at again.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "comm/transport/tcp/socket_address.h"
#include "train/launch/nodes/identity.h"
#include "train/launch/nodes/meeting.h"
#include "train/launch/standalone.h"

namespace gradring::train {
namespace {

using comm::tcp::Handshake;

constexpr auto kPatience = std::chrono::seconds(20);

class TheDoor : public ::testing::Test {
 protected:
  /// Somebody who stands there, and has said `words`.
  UniqueFd knock(const std::string& words) const {
    UniqueFd socket = comm::tcp::begin_connect({"127.0.0.1", static_cast<std::uint16_t>(port_)});
    pollfd connected = {socket.get(), POLLOUT, 0};
    EXPECT_EQ(::poll(&connected, 1, 5000), 1);
    EXPECT_EQ(::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL), std::ssize(words));
    return socket;
  }
  /// Looks as soon as that is possible.
  std::list<NodeLink> look() {
    if (door_.next_look()) std::this_thread::sleep_for(door_.next_look()->remaining());
    return door_.admit();
  }
  static std::ptrdiff_t turned_away(const std::vector<UniqueFd>& sockets) {
    return std::ranges::count_if(sockets, [](const UniqueFd& socket) {
      pollfd closed = {socket.get(), POLLIN, 0};
      return ::poll(&closed, 1, 0) == 1;
    });
  }

  const int port_ = free_tcp_port();
  const LaunchOptions options_{.run_id = "door"};
  Doorway door_{"127.0.0.1", port_, identity_of(options_, NodePart::leads)};
};

TEST_F(TheDoor, IsLookedAtAgainOnlyAfterAWhileIfSomebodyStoodThere) {
  EXPECT_TRUE(door_.admit().empty());
  EXPECT_FALSE(door_.next_look());
  EXPECT_FALSE(door_.fds().empty());

  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 6; ++i) strangers.push_back(knock(std::string(4096, '\xff')));
  EXPECT_TRUE(look().empty());
  EXPECT_EQ(turned_away(strangers), 4);
  EXPECT_TRUE(door_.next_look());
  EXPECT_TRUE(door_.fds().empty()) << "whoever comes meanwhile wakes nobody";
  EXPECT_TRUE(look().empty());
  EXPECT_EQ(turned_away(strangers), 6);

  EXPECT_TRUE(look().empty());
  EXPECT_FALSE(door_.next_look()) << "nobody stood there";
  EXPECT_FALSE(door_.fds().empty());
}

TEST_F(TheDoor, LetsAMemberInWhoComesBehindStrangers) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 30; ++i) silent.push_back(knock(""));
  const auto self = identity_of(options_, NodePart::follows);
  const auto deadline = Deadline::after(kPatience);
  Handshake member = Handshake::dial(knock(""), self, 0, deadline);
  std::list<NodeLink> admitted;
  while (admitted.empty() && !deadline.passed()) {
    member.advance();
    admitted = look();
  }
  EXPECT_EQ(admitted.size(), 1u);
  EXPECT_EQ(member.advance(), Handshake::State::proven);
}

}  // namespace
}  // namespace gradring::train
