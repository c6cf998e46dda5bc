// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/deadline.h"
#include "kernels/base/file.h"

namespace gradring::train {

/// An authenticated connection between two agents. The kernel detects a silent host within about kHostSilence, and
/// closes it; a silent agent on a responding host shows after kAgentSilence, and may continue.
class NodeLink {
 public:
  using Clock = Deadline::Clock;
  static constexpr std::chrono::seconds kHostSilence{6}, kAgentSilence{15};
  static constexpr std::chrono::seconds kBetweenBeats{1};
  static constexpr std::size_t kMaxUnsentBytes = std::size_t{64} << 20;  ///< what a store may hold

  explicit NodeLink(UniqueFd socket);

  /// What to poll for: data to receive, and room for what is unsent. No descriptor once closed.
  pollfd events() const { return {socket_.get(), static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT), 0}; }
  bool open() const { return bool(socket_); }
  /// Why it was closed, for messages.
  const std::string& reason() const { return reason_; }
  /// The numeric address of this host as seen by the peer.
  std::string own_address() const;

  /// Sends what the kernel takes now, and keeps the rest: one slow peer delays no other. Closes the link if the peer is
  /// kMaxUnsentBytes behind.
  void send(const nlohmann::json& message);
  /// Sends what is left, as far as the kernel takes it. Closes the link if the peer has taken nothing for kHostSilence.
  void send_unsent(Clock::time_point now = Clock::now());
  /// Waits until all peers have taken what is unsent, together for kHostSilence at most.
  static void flush(std::span<NodeLink* const> links);
  /// Received messages, at most `most` and about a megabyte per call. Does not block. Closes the link on an invalid or
  /// too long message.
  std::vector<nlohmann::json> receive(std::size_t most = SIZE_MAX);
  void close(const std::string& reason);

  /// Sends what is left, and the heartbeat. Call it at least every kBetweenBeats, after receive().
  void beat(Clock::time_point now = Clock::now());
  /// Whether the peer's heartbeats are overdue.
  bool peer_is_silent(Clock::time_point now = Clock::now()) const;
  void close_for_silence();
  /// Before this agent is suspended: tells the peer not to expect heartbeats until the next message.
  void pause();

 private:
  void read();
  bool parse(const std::string& line);

  UniqueFd socket_;
  std::string unsent_;
  Clock::time_point last_sent_ = Clock::now();  ///< the peer took some of it, or there was nothing
  std::string incoming_;                        ///< an incomplete message
  std::vector<nlohmann::json> received_;        ///< not yet returned
  std::string reason_;
  Clock::time_point last_beat_ = Clock::now(), last_heard_ = Clock::now();
  bool peer_is_paused_ = false;
};

}  // namespace gradring::train
