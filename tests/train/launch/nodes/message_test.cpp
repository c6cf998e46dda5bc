// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/message.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

namespace gradring::train {
namespace {

/// As it comes out at the other end.
nlohmann::json sent(const nlohmann::json& message) { return nlohmann::json::parse(message.dump()); }

TEST(NodeMessage, CarriesAnOffer) {
  const auto offer = offer_in(sent(join_message({.node = 2, .nodes = {2, 3}, .workers = 4, .role = "r", .host = "h"})));
  EXPECT_EQ(offer.node, 2);
  EXPECT_EQ(offer.nodes.least, 2);
  EXPECT_EQ(offer.nodes.most, 3);
  EXPECT_EQ(offer.workers, 4);
  EXPECT_EQ(offer.role, "r");
  EXPECT_EQ(offer.host, "h");
}

TEST(NodeMessage, CarriesAPlace) {
  const auto place = place_in(sent(start_message(5, {.node = 1,
                                                     .nodes = 2,
                                                     .first_rank = 3,
                                                     .world_size = 7,
                                                     .first_role_rank = 4,
                                                     .role_world_size = 6,
                                                     .master_addr = "m",
                                                     .master_port = 9})));
  EXPECT_EQ(place.node, 1);
  EXPECT_EQ(place.nodes, 2);
  EXPECT_EQ(place.first_rank, 3);
  EXPECT_EQ(place.world_size, 7);
  EXPECT_EQ(place.first_role_rank, 4);
  EXPECT_EQ(place.role_world_size, 6);
  EXPECT_EQ(place.master_addr, "m");
  EXPECT_EQ(place.master_port, 9);
}

TEST(NodeMessage, CarriesAnExitAndTheSignalsBefore) {
  WorkerExit exit{.rank = 3, .pid = 12, .code = 161, .exec_error = 2, .host = "h", .message = "lost"};
  exit.sent.set(SIGTERM);
  const auto heard = exit_in(sent(exit_message(exit)));
  EXPECT_EQ(heard.rank, 3);
  EXPECT_EQ(heard.pid, 12);
  EXPECT_EQ(heard.code, 161);
  EXPECT_EQ(heard.exec_error, 2);
  EXPECT_EQ(heard.host, "h");
  EXPECT_EQ(heard.message, "lost");
  EXPECT_EQ(heard.sent, exit.sent);
}

TEST(NodeMessage, CarriesAnyBytesUnderAKey) {
  std::string value;
  for (int byte = 0; byte < 256; ++byte) value += static_cast<char>(byte);
  EXPECT_EQ(key_in(sent(key_message("key-x", value))), value);
}

TEST(NodeMessage, OfAnotherVersionIsAnError) {
  EXPECT_THROW(offer_in({{"say", "join"}}), nlohmann::json::exception);
  EXPECT_THROW(place_in({{"say", "start"}, {"node", "x"}}), nlohmann::json::exception);
}

}  // namespace
}  // namespace gradring::train
