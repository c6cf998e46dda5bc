// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/tcp/roll_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "comm/transport/tcp/socket_address.h"

namespace gradring::comm::tcp {
namespace {

/// A rank that waits says so several times a second; one that said so longer ago is doing something else, or stopped.
constexpr std::chrono::seconds kFresh(1);

std::string text(const Errand& errand) {
  return errand.number ? fmt::format("{} {}", errand.operation, errand.number) : std::string(errand.operation);
}

}  // namespace

RollCall::RollCall(int rank, std::vector<std::string> descriptions, Tell tell)
    : rank_(rank), descriptions_(std::move(descriptions)), standings_(descriptions_.size()), tell_(std::move(tell)) {}

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
  for (int peer = 0; peer < world_size(); ++peer)
    if (standing(peer).membership > Membership::left) follow(peer, errand);
  for (int peer = 0; peer < world_size(); ++peer) {
    const Standing& theirs = standing(peer);
    const bool left = theirs.membership == Membership::left;
    if (theirs.lost && !left)
      fail<PeerLost>(
          Membership::lost_peer, peer,
          fmt::format("{} is gone ({}) while rank {} waited in {}, step {}: look at its log or its exit status",
                      name_of(peer), theirs.why_lost, rank_, text(errand), errand.step),
          errand);
    if (left && std::ranges::find(awaited, peer) != awaited.end())
      fail<PeerLost>(Membership::lost_peer, peer,
                     fmt::format("{} left the group while rank {} waited for it in {}, step {}: look at its log",
                                 name_of(peer), rank_, text(errand), errand.step),
                     errand);
  }
}

void RollCall::follow(int reporter, const Errand& errand) {
  const Membership reason = standing(reporter).membership;
  const int culprit = standing(reporter).culprit;
  const std::string blamed = culprit == rank_ ? "this rank" : name_of(culprit);
  const std::string where = fmt::format("; rank {} was in {}, step {}", rank_, text(errand), errand.step);
  if (reason == Membership::lost_peer)
    fail<PeerLost>(reason, culprit, fmt::format("rank {} reports that it lost {}{}", reporter, blamed, where), errand);
  if (reason == Membership::timed_out)
    fail<Timeout>(reason, culprit,
                  fmt::format("rank {} reports that it waited in vain for {}{}", reporter, blamed, where), errand);
  fail<Desync>(reason, culprit,
               fmt::format("rank {} reports that {} is out of step with it{}", reporter, blamed, where), errand);
}

void RollCall::time_out(const std::vector<int>& awaited, const Errand& errand) {
  const int culprit = awaited.empty() ? -1 : last_in_line(awaited.front());
  const std::string line = awaited.empty() || culprit == awaited.front()
                               ? ""
                               : fmt::format(" (the line of those who wait ends at rank {})", culprit);
  const auto waited = std::chrono::duration<double>(Deadline::Clock::now() - errand.since);
  fail<Timeout>(
      Membership::timed_out, culprit,
      fmt::format("rank {} waited {:.1f} s for rank {} in {}, step {}{}: {} is slow, stopped or cut off; look "
                  "at its log, or raise the timeout",
                  rank_, waited.count(), fmt::join(awaited, ", "), text(errand), errand.step, line, name_of(culprit)),
      errand);
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

void RollCall::report_desync(int peer, const std::string& message, const Errand& errand) {
  fail<Desync>(Membership::out_of_step, peer, message, errand);
}

template <class E>
void RollCall::fail(Membership reason, int culprit, const std::string& message, const Errand& errand) {
  const E error({rank_, culprit, text(errand), errand.step}, message);
  broken_ = std::make_exception_ptr(error);
  tell_(reason, culprit);
  throw error;
}

void RollCall::refuse_if_broken() const {
  if (broken_) std::rethrow_exception(broken_);
}

std::string RollCall::name_of(int peer) const {
  if (peer < 0) return "an unknown rank";
  return fmt::format("rank {} ({})", peer, descriptions_[static_cast<std::size_t>(peer)]);
}

}  // namespace gradring::comm::tcp
