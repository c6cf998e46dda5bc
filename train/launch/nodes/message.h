// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "train/launch/launcher.h"
#include "train/launch/node_place.h"
#include "train/launch/worker_exit.h"

namespace gradring::train {

/// What agents tell each other, once they have proven themselves: a JSON object a line, with a "say" of one of these:
///
///   join     follower -> leader   who it is and what it brings
///   refuse   leader -> follower   why it cannot join
///   start    leader -> follower   an attempt, and its place in it
///   signal   both ways            a number: for the workers; or that somebody sent to this agent
///   leave    follower -> leader   it wants to go, and the run may go on without it
///   exit     follower -> leader   how a worker ended
///   key      both ways            an entry of the workers' store
///   finish   leader -> follower   the run's exit code
///   beat     both ways            that it is there; NodeLink's own
constexpr std::size_t kLongestMessage = 512 * 1024;

/// What a node brings.
struct NodeOffer {
  int node = 0;  ///< -1: any
  NodeRange nodes{};
  int workers = 1;
  std::string role{};
  std::string host{};
};

nlohmann::json join_message(const NodeOffer& offer);
nlohmann::json start_message(int attempt, const NodePlace& place);
nlohmann::json exit_message(const WorkerExit& exit);
nlohmann::json leave_message();
nlohmann::json signal_message(int number);
nlohmann::json key_message(const std::string& name, const std::string& value);
nlohmann::json finish_message(int code);
nlohmann::json refuse_message(const std::string& why);

/// Readers of the same. The other side has proven itself, but may be of another version.
///
/// Errors    nlohmann::json::exception if a member is missing or of another type.
NodeOffer offer_in(const nlohmann::json& message);
NodePlace place_in(const nlohmann::json& message);
WorkerExit exit_in(const nlohmann::json& message);
std::string key_in(const nlohmann::json& message);

}  // namespace gradring::train
