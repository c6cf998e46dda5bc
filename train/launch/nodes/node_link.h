// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/runtime/unique_fd.h"

namespace gradring::train {

/// A connection between two agents that have proven themselves to each other. A host that falls silent is noticed by the
/// kernel within about kHostSilence; an agent that does, though its host answers, by its peer within kAgentSilence.
class NodeLink {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kHostSilence{6}, kAgentSilence{15};
  static constexpr std::chrono::seconds kBetweenBeats{1};

  explicit NodeLink(UniqueFd socket);

  /// Readable when there is something to receive; -1 once the connection is over.
  int fd() const { return socket_.get(); }
  bool open() const { return bool(socket_); }
  /// Why it is over, for people.
  const std::string& reason() const { return reason_; }
  /// The numeric address by which the peer sees this host.
  std::string own_address() const;

  /// Sends a message whole, or closes the link: a peer that takes nothing for seconds is gone.
  void send(const nlohmann::json& message);
  /// What has come since the last call, `most` messages of it; does not wait. A peer that sends what is no message, or too long
  /// a one, is cut off.
  std::vector<nlohmann::json> receive(std::size_t most = SIZE_MAX);
  void close(const std::string& reason);

  /// To be called oftener than kBetweenBeats, after receive(): tells the peer that this agent is there, and closes the link if
  /// the peer has long not said so.
  void beat(Clock::time_point now = Clock::now());
  /// Tells the peer that nothing more will come until this agent, which is about to be suspended, goes on.
  void pause();

 private:
  void read();
  bool understand(const std::string& line);

  UniqueFd socket_;
  std::string incoming_;                  ///< the begin of a message
  std::vector<nlohmann::json> received_;  ///< and not been asked for yet
  std::string reason_;
  Clock::time_point last_beat_ = Clock::now(), last_heard_ = Clock::now();
  bool peer_is_paused_ = false;
};

}  // namespace gradring::train
