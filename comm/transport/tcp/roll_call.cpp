// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/tcp/roll_call.h"

#include <algorithm>
#include <utility>

#include "comm/transport/tcp/socket_address.h"

namespace gradring::comm::tcp {
namespace {

/// A rank that waits says so several times a second; one that said so longer ago is doing something else, or stopped.
constexpr std::chrono::seconds kFresh(1);

}  // namespace

RollCall::RollCall(int rank, std::vector<std::string> descriptions, GroupFailure::Tell tell)
    : rank_(rank),
      standings_(descriptions.size()),
      failure_(
          rank, [names = std::move(descriptions)](int peer) { return names[static_cast<std::size_t>(peer)]; },
          std::move(tell)) {}

void RollCall::hear(int peer, const Frame& frame) {
  Standing& theirs = standings_[static_cast<std::size_t>(peer)];
  if (frame.kind == FrameKind::waiting) {
    theirs.waiting_for = frame.subject;
    theirs.said_so = Deadline::Clock::now();
  } else if (frame.kind == FrameKind::farewell) {
    theirs.membership = frame.reason == Membership::member ? Membership::left : frame.reason;
    theirs.culprit = frame.subject;
  }
}

void RollCall::lose(int peer, int error_number) {
  Standing& theirs = standings_[static_cast<std::size_t>(peer)];
  if (theirs.lost) return;
  theirs.lost = true;
  theirs.why_lost = error_number == 0 ? "its connection was closed" : reason_of(error_number);
}

void RollCall::judge(const std::vector<int>& awaited, const Errand& errand) {
  for (int peer = 0; peer < world_size(); ++peer) {
    const Standing& theirs = standing(peer);
    if (theirs.membership > Membership::left) failure_.follow(peer, theirs.membership, theirs.culprit, errand);
  }
  std::vector<int> lost;
  for (int peer = 0; peer < world_size(); ++peer)
    if (standing(peer).lost && standing(peer).membership != Membership::left) lost.push_back(peer);
  if (!lost.empty())
    failure_.lose(lost.front(), "is gone (" + standing(lost.front()).why_lost + ")", errand,
                  {lost.begin() + 1, lost.end()});
  // Who left may have missed the one that is gone, in the other of a process group's two transports.
  for (int peer = 0; peer < world_size(); ++peer)
    if (standing(peer).membership == Membership::left && std::ranges::find(awaited, peer) != awaited.end())
      failure_.miss(peer, errand);
}

void RollCall::time_out(const std::vector<int>& awaited, const Errand& errand) {
  const int culprit = awaited.empty() ? -1 : last_in_line(awaited.front());
  failure_.time_out(awaited, culprit, "is slow, stopped or cut off; look at its log, or raise the timeout", errand);
}

/// Follows who waits for whom, from `peer` on, to the rank that has not said that it waits: the one to look at.
int RollCall::last_in_line(int peer) const {
  const auto now = Deadline::Clock::now();
  for (int hops = 0; hops < world_size(); ++hops) {
    const Standing& theirs = standing(peer);
    if (theirs.waiting_for < 0 || theirs.waiting_for == rank_ || now - theirs.said_so > kFresh) break;
    peer = theirs.waiting_for;
  }
  return peer;
}

}  // namespace gradring::comm::tcp
