// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>

#include "kernels/base/error.h"
#include "train/launch/workers/launch_options.h"
#include "train/launch/workers/worker_environment.h"
#include "train/launch/workers/workers.h"

namespace gradring::train {

/// What authenticated agents send each other: a JSON object per line, with one of these as its "say":
///
///   join     follower -> leader   who it is and how many workers it brings
///   refuse   leader -> follower   why it cannot join
///   start    leader -> follower   an attempt, its ranks, and the nonce of the ranks' token (token.h)
///   signal   both ways            a number: for the workers, or received by this agent
///   leave    follower -> leader   it wants to leave a run that may continue without it
///   exit     follower -> leader   how a worker ended
///   stopped  follower -> leader   it heard nothing from the leader for long and stops its workers
///   key      both ways            an entry of the workers' store; its value is null if it was removed
///   finish   leader -> follower   the exit code of the run, and why if the leader has given up
///   beat     both ways            heartbeat, internal to NodeLink
constexpr std::size_t kMaxMessageBytes = 512 * 1024;
/// Longer error messages of workers are cut. Escaped, a byte takes up to six, which still fits a message.
constexpr std::size_t kMaxTextBytes = 64 * 1024;

/// A message that no agent of this version sends: the member, the value found and what was expected.
class MessageError : public Error {
 public:
  using Error::Error;
};

struct JoinRequest {
  int node = 0;  ///< -1: any
  NodeRange nodes{};
  int workers = 1;
  std::string role{};
  std::string host{};
};

JoinRequest join_request_of(const LaunchOptions& options);

struct ReportedExit {
  WorkerExit exit{};
  std::int64_t step = -1;  ///< the furthest that a worker of that node reported; -1: none
};

struct StartMessage {
  int attempt = 0;
  NodeAssignment assignment{};
  std::string address{};  ///< of the leader's workers, for those of other nodes
  std::string nonce{};    ///< of the ranks' token
};

struct FinishMessage {
  int code = 0;
  std::string why{};
};

nlohmann::json join_message(const JoinRequest& request);
nlohmann::json start_message(const StartMessage& start);
nlohmann::json exit_message(const ReportedExit& reported);
nlohmann::json leave_message();
nlohmann::json stopped_message();
nlohmann::json signal_message(int number);
nlohmann::json key_message(const std::string& name, const std::optional<std::string>& value);
nlohmann::json finish_message(int code, const std::string& why = "");
nlohmann::json refuse_message(const std::string& why);

/// Readers of these messages. An authenticated agent may still be broken or of another version, so they check the range
/// of each number and the length of each text, and escape control characters in what is printed.
///
/// Errors    MessageError if a member is missing, of another type or out of bounds. It repeats no text of the message.
std::string kind_of(const nlohmann::json& message);
JoinRequest join_request_in(const nlohmann::json& message);
StartMessage start_in(const nlohmann::json& message);
ReportedExit exit_in(const nlohmann::json& message);
int signal_in(const nlohmann::json& message);
/// The name of an entry of the workers' store, and its value unless it was removed.
std::pair<std::string, std::optional<std::string>> entry_in(const nlohmann::json& message);
FinishMessage finish_in(const nlohmann::json& message);
std::string refusal_in(const nlohmann::json& message);

}  // namespace gradring::train
