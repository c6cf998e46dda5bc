// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/tcp/failure_detector.h"

#include <algorithm>
#include <utility>

#include "comm/sockets/socket_address.h"

namespace gradring::comm::tcp {
namespace {

/// A waiting rank reports it several times per second; an older report means that the rank no longer waits or is
/// stopped.
constexpr std::chrono::seconds kMaxReportAge(1);

}  // namespace

FailureDetector::FailureDetector(int rank, std::vector<std::string> descriptions, GroupFailure::Notify notify)
    : rank_(rank),
      peers_(descriptions.size()),
      failure_(
          rank, [names = std::move(descriptions)](int peer) { return names[static_cast<std::size_t>(peer)]; },
          std::move(notify)) {}

void FailureDetector::record(int peer, const Frame& frame) {
  PeerState& theirs = peers_[static_cast<std::size_t>(peer)];
  if (frame.kind == FrameKind::waiting) {
    theirs.waiting_for = frame.subject;
    theirs.waiting_reported = Deadline::Clock::now();
  } else if (frame.kind == FrameKind::goodbye) {
    theirs.state = frame.reason == GroupState::member ? GroupState::left : frame.reason;
    theirs.failed_rank = frame.subject;
  }
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

void FailureDetector::throw_timeout(const std::vector<int>& awaited, const PendingOp& op) {
  const int failed_rank = awaited.empty() ? -1 : end_of_wait_chain(awaited.front());
  failure_.throw_timeout(awaited, failed_rank, "is slow, stopped or unreachable; look at its log, or raise the timeout",
                         op);
}

/// Follows the chain of waiting ranks from `peer` on, to the rank that does not report that it waits.
int FailureDetector::end_of_wait_chain(int peer) const {
  const auto now = Deadline::Clock::now();
  for (int hops = 0; hops < world_size(); ++hops) {
    const PeerState& theirs = state_of(peer);
    if (theirs.waiting_for < 0 || theirs.waiting_for == rank_ || now - theirs.waiting_reported > kMaxReportAge) break;
    peer = theirs.waiting_for;
  }
  return peer;
}

}  // namespace gradring::comm::tcp
