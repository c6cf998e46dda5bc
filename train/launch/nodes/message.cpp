// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/message.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace gradring::train {

using nlohmann::json;

json join_message(const NodeOffer& offer) {
  return {{"say", "join"},
          {"node", offer.node},
          {"least", offer.nodes.least},
          {"most", offer.nodes.most},
          {"workers", offer.workers},
          {"role", offer.role},
          {"host", offer.host}};
}

json start_message(int attempt, const NodePlace& place) {
  return {{"say", "start"},
          {"attempt", attempt},
          {"node", place.node},
          {"nodes", place.nodes},
          {"first_rank", place.first_rank},
          {"world_size", place.world_size},
          {"first_role_rank", place.first_role_rank},
          {"role_world_size", place.role_world_size},
          {"master_addr", place.master_addr},
          {"master_port", place.master_port}};
}

json exit_message(const WorkerExit& exit) {
  json sent = json::array();
  for (std::size_t number = 1; number < exit.sent.size(); ++number)
    if (exit.sent[number]) sent.push_back(number);
  return {{"say", "exit"},     {"rank", exit.rank},     {"pid", exit.pid},
          {"code", exit.code}, {"signal", exit.signal}, {"exec_error", exit.exec_error},
          {"sent", sent},      {"host", exit.host},     {"message", exit.message}};
}

json leave_message() { return {{"say", "leave"}}; }

json signal_message(int number) { return {{"say", "signal"}, {"number", number}}; }

json key_message(const std::string& name, const std::string& value) {
  return {{"say", "key"}, {"name", name}, {"value", std::vector<int>(value.begin(), value.end())}};
}

json finish_message(int code) { return {{"say", "finish"}, {"code", code}}; }

json refuse_message(const std::string& why) { return {{"say", "refuse"}, {"why", why}}; }

NodeOffer offer_in(const json& message) {
  return {.node = message.at("node"),
          .nodes = {message.at("least"), message.at("most")},
          .workers = message.at("workers"),
          .role = message.at("role"),
          .host = message.at("host")};
}

NodePlace place_in(const json& message) {
  return {.node = message.at("node"),
          .nodes = message.at("nodes"),
          .first_rank = message.at("first_rank"),
          .world_size = message.at("world_size"),
          .first_role_rank = message.at("first_role_rank"),
          .role_world_size = message.at("role_world_size"),
          .master_addr = message.at("master_addr"),
          .master_port = message.at("master_port")};
}

WorkerExit exit_in(const json& message) {
  WorkerExit exit{.rank = message.at("rank"),
                  .pid = message.at("pid"),
                  .code = message.at("code"),
                  .signal = message.at("signal"),
                  .exec_error = message.at("exec_error"),
                  .host = message.at("host"),
                  .message = message.at("message")};
  for (const std::size_t number : message.at("sent"))
    if (number < exit.sent.size()) exit.sent.set(number);
  return exit;
}

std::string key_in(const json& message) {
  const auto bytes = message.at("value").get<std::vector<int>>();
  return {bytes.begin(), bytes.end()};
}

}  // namespace gradring::train
