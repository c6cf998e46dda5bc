// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/tcp/failure_detector.h"

#include <algorithm>
#include <utility>

#include "comm/sockets/socket_address.h"

namespace gradring::comm::tcp {

FailureDetector::FailureDetector(int rank, std::vector<std::string> descriptions, GroupFailure::Notify notify)
    : peers_(descriptions.size()),
      failure_(
          rank, [names = std::move(descriptions)](int peer) { return names[static_cast<std::size_t>(peer)]; },
          std::move(notify)) {}

void FailureDetector::record_goodbye(int peer, const Frame& frame) {
  PeerState& theirs = peers_[static_cast<std::size_t>(peer)];
  theirs.state = frame.reason == GroupState::member ? GroupState::left : frame.reason;
  theirs.failed_rank = frame.subject;
}

void FailureDetector::record_lost(int peer, int error_number) {
  PeerState& theirs = peers_[static_cast<std::size_t>(peer)];
  if (theirs.lost) return;
  theirs.lost = true;
  theirs.why_lost = error_number == 0 ? "its connection was closed" : reason_of(error_number);
}

void FailureDetector::check(const std::vector<int>& awaited, const PendingOp& op) {
  failure_.adopt_and_throw_if_failed();
  for (int peer = 0; peer < world_size(); ++peer) {
    const PeerState& theirs = state_of(peer);
    if (theirs.state > GroupState::left) failure_.throw_reported(peer, theirs.state, theirs.failed_rank, op);
  }
  std::vector<int> lost;
  for (int peer = 0; peer < world_size(); ++peer)
    if (state_of(peer).lost && state_of(peer).state != GroupState::left) lost.push_back(peer);
  if (!lost.empty())
    failure_.throw_peer_lost(lost.front(), "is gone (" + state_of(lost.front()).why_lost + ")", op,
                             {lost.begin() + 1, lost.end()});
  // Last, because a rank may have left normally before it could notice a death.
  for (int peer = 0; peer < world_size(); ++peer)
    if (state_of(peer).state == GroupState::left && std::ranges::find(awaited, peer) != awaited.end())
      failure_.throw_peer_left(peer, op);
}

}  // namespace gradring::comm::tcp
