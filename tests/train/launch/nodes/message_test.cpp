// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/message.h"
#include "tests/support/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <limits>

namespace gradring::train {
namespace {

using namespace std::string_literals;
using nlohmann::json;

/// As received by the peer.
json sent(const json& message) { return tests::parse_json(message.dump()); }

TEST(NodeMessage, RoundTripsJoinRequests) {
  const auto offer =
      join_request_in(sent(join_message({.node = 2, .nodes = {2, 3}, .workers = 4, .role = "r", .host = "h"})));
  EXPECT_EQ(offer.node, 2);
  EXPECT_EQ(offer.nodes.least, 2);
  EXPECT_EQ(offer.nodes.most, 3);
  EXPECT_EQ(offer.workers, 4);
  EXPECT_EQ(offer.role, "r");
  EXPECT_EQ(offer.host, "h");
}

TEST(NodeMessage, RoundTripsAssignments) {
  const auto start = start_in(sent(start_message({.attempt = 5,
                                                  .assignment = {.node = 1,
                                                                 .nodes = 2,
                                                                 .first_rank = 3,
                                                                 .world_size = 7,
                                                                 .first_role_rank = 4,
                                                                 .role_world_size = 6,
                                                                 .master_port = 9},
                                                  .address = "::1",
                                                  .nonce = "ab"})));
  const NodeAssignment& place = start.assignment;
  EXPECT_EQ(start.attempt, 5);
  EXPECT_EQ(start.address, "::1");
  EXPECT_EQ(start.nonce, "ab");
  EXPECT_EQ(place.node, 1);
  EXPECT_EQ(place.nodes, 2);
  EXPECT_EQ(place.first_rank, 3);
  EXPECT_EQ(place.world_size, 7);
  EXPECT_EQ(place.first_role_rank, 4);
  EXPECT_EQ(place.role_world_size, 6);
  EXPECT_EQ(place.master_port, 9);
}

TEST(NodeMessage, RoundTripsExitsWithSentSignals) {
  WorkerExit exit{.rank = 3, .pid = 12, .code = 161, .exec_error = 2, .host = "h", .message = "lost"};
  exit.sent.set(SIGTERM);
  const auto [heard, step] = exit_in(sent(exit_message({exit, 70})));
  EXPECT_EQ(step, 70);
  EXPECT_EQ(heard.rank, 3);
  EXPECT_EQ(heard.pid, 12);
  EXPECT_EQ(heard.code, 161);
  EXPECT_EQ(heard.exec_error, 2);
  EXPECT_EQ(heard.host, "h");
  EXPECT_EQ(heard.message, "lost");
  EXPECT_EQ(heard.sent, exit.sent);
}

TEST(NodeMessage, RoundTripsAnyBytesOfAnEntry) {
  std::string value;
  for (int byte = 0; byte < 256; ++byte) value += static_cast<char>(byte);
  EXPECT_EQ(entry_in(sent(key_message("key-x", value))), std::pair("key-x"s, std::optional(value)));
  EXPECT_EQ(entry_in(sent(key_message("key-x", std::nullopt))).second, std::nullopt);
}

TEST(NodeMessage, RoundTripsSignalsCodesAndReasons) {
  EXPECT_EQ(signal_in(sent(signal_message(SIGTERM))), SIGTERM);
  EXPECT_EQ(finish_in(sent(finish_message(143))).code, 143);
  EXPECT_EQ(refusal_in(sent(refuse_message("why\n"))), "why\n");
  EXPECT_EQ(finish_in(sent(finish_message(3, "node 1 did not join"))).why, "node 1 did not join");
  EXPECT_EQ(kind_of(sent(leave_message())), "leave");
  EXPECT_EQ(kind_of(sent(stopped_message())), "stopped");
}

TEST(NodeMessage, RejectsOtherVersions) {
  EXPECT_THROW(join_request_in({{"say", "join"}}), MessageError);
  EXPECT_THROW(start_in({{"say", "start"}, {"node", "x"}}), MessageError);
  EXPECT_THROW(kind_of({{"say", {1}}}), MessageError);
  EXPECT_THROW(kind_of({{"say", std::string(17, 'x')}}), MessageError);
}

TEST(NodeMessage, ErrorNamesMemberValueAndBounds) {
  try {
    signal_in({{"say", "signal"}, {"number", 99999}});
    FAIL();
  } catch (const MessageError& error) {
    EXPECT_STREQ(
        error.what(),
        "it sent an invalid message: 'number' of 'signal' is 99999, expected a whole number from 1 to 64; run the "
        "same version of gradring on all nodes");
  }
}

/// A member of a message with a value out of bounds.
struct BadMember {
  const char* name;
  json value;
};

json offer_message() { return join_message({.node = 1, .nodes = {2, 2}, .workers = 1, .role = "r", .host = "h"}); }
json place_message() {
  return start_message({.assignment = {.nodes = 2, .world_size = 2, .role_world_size = 2, .master_port = 1},
                        .address = "10.0.0.1",
                        .nonce = "ab"});
}

template <class Reader>
void expect_refused(const json& message, Reader reader, const std::vector<BadMember>& members) {
  ASSERT_NO_THROW(reader(message));
  for (const auto& [name, value] : members) {
    json bad = message;
    bad[name] = value;
    EXPECT_THROW(reader(bad), MessageError) << bad.dump().substr(0, 200);
    bad.erase(name);
    EXPECT_THROW(reader(bad), MessageError) << "without " << name;
  }
}

TEST(NodeMessage, RejectsNumbersOutOfRange) {
  constexpr auto kHuge = std::numeric_limits<std::uint64_t>::max();
  expect_refused(signal_message(1), signal_in, {{"number", 0}, {"number", 65}, {"number", -1}, {"number", kHuge}});
  expect_refused(signal_message(1), signal_in,
                 {{"number", 1.5}, {"number", true}, {"number", "1"}, {"number", nullptr}});
  expect_refused(finish_message(0), finish_in, {{"code", -1}, {"code", 256}});
  expect_refused(
      offer_message(), join_request_in,
      {{"workers", 0}, {"workers", 2147483647}, {"node", -2}, {"node", 65536}, {"least", 0}, {"most", 65537}});
  expect_refused(place_message(), start_in, {{"attempt", -1}, {"attempt", std::int64_t(1) << 31}});
  expect_refused(place_message(), start_in, {{"nonce", 1}, {"nonce", std::string(65, 'a')}});
  expect_refused(place_message(), start_in,
                 {{"node", 2}, {"nodes", 0}, {"first_rank", 2}, {"world_size", 0}, {"world_size", (1 << 20) + 1}});
  expect_refused(place_message(), start_in,
                 {{"first_role_rank", 2}, {"role_world_size", 3}, {"master_port", 0}, {"master_port", 65536}});
  expect_refused(exit_message({}), exit_in,
                 {{"rank", -1}, {"code", 256}, {"signal", 65}, {"exec_error", -1}, {"step", -2}});
  expect_refused(exit_message({}), exit_in,
                 {{"sent", {0}}, {"sent", {65}}, {"sent", std::vector<int>(65, 1)}, {"sent", 9}});
  expect_refused(key_message("key-x", "v"), entry_in,
                 {{"value", {-1}}, {"value", {256}}, {"value", {"1"}}, {"value", 7}});
}

TEST(NodeMessage, RejectsTextOutOfBounds) {
  expect_refused(offer_message(), join_request_in,
                 {{"role", std::string(1025, 'r')}, {"role", "a\x1b[2J"}, {"host", 7}});
  expect_refused(place_message(), start_in,
                 {{"address", std::string(256, 'a')}, {"address", "a\nb"}, {"address", "a\u009b2J"}});
  expect_refused(finish_message(3, "why"), finish_in, {{"why", 7}});
  expect_refused(key_message("key-x", "v"), entry_in,
                 {{"name", "key-../x"}, {"name", "x"}, {"name", "key-\0"s}, {"name", "key-" + std::string(241, 'x')}});
  expect_refused(key_message("key-x", "v"), entry_in, {{"value", std::vector<int>(64 * 1024 + 1, 0)}});
}

TEST(NodeMessage, EscapesAndCutsPrintedText) {
  json offer = offer_message();
  offer["host"] = "a\x1b[2J\u009bx\x7f\r" + std::string(300, 'h');
  EXPECT_THAT(join_request_in(offer).host, testing::StartsWith("a\\x1b[2J\\u009bx\\x7f\\x0dh"));
  EXPECT_LT(join_request_in(offer).host.size(), 300u);
  EXPECT_EQ(refusal_in(refuse_message("line\n\tline\x07")), "line\n\tline\\x07");
}

TEST(NodeMessage, CutsLongErrorMessagesOfWorkers) {
  for (const char* piece : {"x", "\x01", "\xff", "\u00e4"}) {
    std::string words;
    while (words.size() < 2 * kMaxMessageBytes) words += piece;
    const std::string text =
        exit_message({.exit = {.message = words}}).dump(-1, ' ', false, json::error_handler_t::replace);
    EXPECT_LT(text.size(), kMaxMessageBytes);
    EXPECT_NO_THROW(exit_in(tests::parse_json(text)));
  }
}

}  // namespace
}  // namespace gradring::train
