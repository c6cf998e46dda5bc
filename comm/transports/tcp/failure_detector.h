// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "comm/transport/group_failure.h"
#include "comm/transports/tcp/connection.h"

namespace gradring::comm::tcp {

/// Detects failures of peers from their frames and from closed connections. A rank that fails tells all other ranks why
/// and which rank failed, so that all name the same rank.
class FailureDetector {
 public:
  /// `notify` sends a goodbye to all other ranks.
  FailureDetector(int rank, std::vector<std::string> descriptions, GroupFailure::Notify notify);

  /// Records a peer's goodbye.
  void record_goodbye(int peer, const Frame& frame);
  /// Records that a peer's connection has ended, and its errno.
  void record_lost(int peer, int error_number);

  /// Throws the error that failed the group, or that another rank reports; PeerLost if any rank is gone without a
  /// goodbye, or if one of `awaited` has left.
  void check(const std::vector<int>& awaited, const PendingOp& op);
  GroupFailure& failure() { return failure_; }

 private:
  struct PeerState {
    GroupState state = GroupState::member;
    int failed_rank = -1;
    bool lost = false;
    std::string why_lost;
  };

  int world_size() const { return static_cast<int>(peers_.size()); }
  const PeerState& state_of(int peer) const { return peers_[static_cast<std::size_t>(peer)]; }

  std::vector<PeerState> peers_;
  GroupFailure failure_;
};

}  // namespace gradring::comm::tcp
