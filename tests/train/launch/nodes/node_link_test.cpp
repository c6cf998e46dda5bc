// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/node_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "kernels/runtime/error.h"

namespace gradring::train {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// Two agents' ends of one connection.
class NodeLinks : public ::testing::Test {
 protected:
  NodeLinks() : NodeLinks(connected()) {}

  static std::pair<int, int> connected() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
      throw DeviceError("no pair of sockets");
    return {ends[0], ends[1]};
  }
  explicit NodeLinks(std::pair<int, int> ends) : here_(UniqueFd(ends.first)), there_(UniqueFd(ends.second)) {}

  /// Both beat once a second of a clock of their own, and only `here_` if the other is silent.
  void live(std::chrono::seconds time, bool both) {
    for (const auto end = now_ + time; now_ < end;) {
      now_ += 1s;
      here_.beat(now_);
      if (both) there_.beat(now_);
    }
  }

  NodeLink here_, there_;
  NodeLink::Clock::time_point now_ = NodeLink::Clock::now();
};

TEST_F(NodeLinks, CarryMessagesAndSwallowBeats) {
  live(3s, true);
  there_.send({{"say", "leave"}});
  live(1s, true);
  EXPECT_EQ(here_.receive(), std::vector<nlohmann::json>({{{"say", "leave"}}}));
  EXPECT_TRUE(there_.receive().empty());
}

TEST_F(NodeLinks, KeepWhatWasNotAskedFor) {
  there_.send({{"say", "join"}});
  there_.send({{"say", "leave"}});
  there_.close("done");
  EXPECT_EQ(here_.receive(1), std::vector<nlohmann::json>({{{"say", "join"}}}));
  EXPECT_EQ(here_.receive(1), std::vector<nlohmann::json>({{{"say", "leave"}}}));
  EXPECT_TRUE(here_.receive().empty());
  EXPECT_FALSE(here_.open());
}

TEST_F(NodeLinks, CloseWhereTheOtherAgentFallsSilent) {
  live(NodeLink::kAgentSilence - 1s, false);
  EXPECT_TRUE(here_.open());
  live(3s, false);
  EXPECT_FALSE(here_.open());
  EXPECT_THAT(here_.reason(), HasSubstr("has said nothing for 15 s"));
}

TEST_F(NodeLinks, WaitForOneThatSaidThatItPauses) {
  there_.pause();
  EXPECT_TRUE(here_.receive().empty());
  live(60s, false);
  EXPECT_TRUE(here_.open());
  EXPECT_TRUE(there_.receive().empty());  // no beats have piled up
}

TEST_F(NodeLinks, ExpectBeatsAgainOnceItGoesOn) {
  there_.pause();
  there_.send({{"say", "leave"}});
  EXPECT_EQ(here_.receive().size(), 1u);
  live(NodeLink::kAgentSilence + 3s, false);
  EXPECT_FALSE(here_.open());
}

TEST_F(NodeLinks, OfOneThatHasSleptItselfAreNotClosed) {
  now_ += 60s;
  live(NodeLink::kAgentSilence - 1s, false);
  EXPECT_TRUE(here_.open());
}

}  // namespace
}  // namespace gradring::train
