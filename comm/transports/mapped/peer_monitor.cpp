// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/mapped/peer_monitor.h"

#include <algorithm>

namespace gradring::comm {
namespace {

/// The longest park, and the interval of liveness checks: a killed rank notifies nobody. In a long wait a tenth of it,
/// so that these ranks cost little.
constexpr std::chrono::milliseconds kShortestInterval(20);
constexpr std::chrono::milliseconds kLongestInterval = Deadline::Clock::kLongestNap;
/// Ranks that a check looks at besides the awaited ones. Each rank begins elsewhere and goes round, so together they
/// soon see any death, and tell the others, at a cost for each that does not depend on the world's size.
constexpr int kOthersWatched = 4;

int first(const std::vector<int>& peers) { return peers.empty() ? -1 : peers.front(); }

}  // namespace

PeerMonitor::PeerMonitor(PeerMemory& memory, std::vector<ControlBlock> blocks)
    : memory_(memory),
      blocks_(std::move(blocks)),
      rank_(memory.rank()),
      doorbell_(blocks_, rank_),
      next_watched_(rank_ + 1),
      failure_(
          rank_, [this](int peer) { return memory_.describe(peer); },
          [this](GroupState reason, int failed_rank) {
            status(rank_).failed_rank.store(failed_rank);
            status(rank_).state.store(reason);
            doorbell_.notify_all();
          }) {}

void PeerMonitor::block_until(const std::function<bool()>& ready, const std::function<std::vector<int>()>& awaited,
                              Deadline deadline, const PendingOp& op) {
  if (ready() || doorbell_.spin(ready, awaited())) return;
  const auto began = Deadline::Clock::now();
  while (!ready()) {
    const int needed = first(awaited());
    const std::chrono::nanoseconds waited = Deadline::Clock::now() - began;
    const std::chrono::nanoseconds interval =
        std::clamp<std::chrono::nanoseconds>(waited / 10, kShortestInterval, kLongestInterval);
    // Also awake if `needed` has just done its part and another rank is missing: that one would not notify.
    notified_ |= doorbell_.park(needed, deadline.nap(interval),
                                [&] { return ready() || first(awaited()) != needed || deadline.passed(); });
    if (ready()) break;
    const bool late = deadline.passed();
    // Before the timeout: an earlier failure names the root cause.
    check_peers(ready, awaited, watched(awaited(), interval, late), notified_ || late, op);
    if (late && !ready()) throw_timeout(awaited(), op);
  }
  status(rank_).waiting_for.store(-1);
}

void PeerMonitor::check_peers(const std::function<bool()>& ready, const std::function<std::vector<int>()>& awaited,
                              const std::vector<bool>& watched, bool all, const PendingOp& op) {
  failure_.adopt_and_throw_if_failed();
  for (int peer = 0; peer < memory_.world_size(); ++peer) {
    const bool is_watched = watched[static_cast<std::size_t>(peer)];
    if (!is_watched && !all) continue;
    const bool gone = is_watched && memory_.gone(peer);
    const GroupState state = status(peer).state.load();  // after that: a rank may leave and end in between
    const bool dead = gone && state == GroupState::member;
    if (peer == rank_ || (state == GroupState::member && !dead)) continue;
    // The peer's last writes happened before it left, so they are visible now.
    if (ready()) return;
    const std::vector<int> needed = awaited();
    if (dead) throw_if_peer_died(op);
    if (state != GroupState::left) failure_.throw_reported(peer, state, status(peer).failed_rank.load(), op);
    if (std::ranges::find(needed, peer) == needed.end()) continue;
    throw_if_peer_died(op);
    failure_.throw_peer_left(peer, op);
  }
  if (all) notified_ = false;
}

/// The ranks of which this check sees a death; none if the last check was just now.
std::vector<bool> PeerMonitor::watched(const std::vector<int>& awaited, std::chrono::nanoseconds interval, bool late) {
  std::vector<bool> peers(blocks_.size(), late);
  const auto now = Deadline::Clock::now();
  if (!late && now < next_liveness_check_) return peers;
  next_liveness_check_ = now + interval;
  for (const int peer : awaited) peers[static_cast<std::size_t>(peer)] = true;
  const int world = memory_.world_size();
  for (int i = 0; i < kOthersWatched; ++i) peers[static_cast<std::size_t>(next_watched_++ % world)] = true;
  next_watched_ %= world;
  return peers;
}

/// A rank may have left normally before it could notice the death, so death comes first.
void PeerMonitor::throw_if_peer_died(const PendingOp& op) {
  std::vector<int> dead;
  for (int peer = 0; peer < memory_.world_size(); ++peer)
    if (peer != rank_ && memory_.gone(peer) && status(peer).state.load() == GroupState::member) dead.push_back(peer);
  if (!dead.empty()) failure_.throw_peer_lost(dead.front(), "died", op, {dead.begin() + 1, dead.end()});
}

void PeerMonitor::throw_timeout(const std::vector<int>& awaited, const PendingOp& op) {
  const int failed_rank = failed_rank_of(awaited);
  const bool stopped = failed_rank >= 0 && memory_.stopped(failed_rank);
  failure_.throw_timeout(awaited, failed_rank,
                         stopped ? "is stopped by a signal; continue it (kill -CONT) or end the job"
                                 : "is slow or never joined the operation; look at its log, or raise the timeout",
                         op);
}

/// A stopped rank, rather than one that may be late because of it.
int PeerMonitor::failed_rank_of(const std::vector<int>& awaited) const {
  for (const int peer : awaited)
    if (const int end = end_of_wait_chain(peer); memory_.stopped(end)) return end;
  return awaited.empty() ? -1 : end_of_wait_chain(awaited.front());
}

/// Follows the chain of waiting ranks from `peer` on, to the rank that does not wait or is stopped.
int PeerMonitor::end_of_wait_chain(int peer) const {
  for (int hops = 0; hops < memory_.world_size(); ++hops) {
    const int next = status(peer).waiting_for.load();
    if (next < 0 || next == rank_ || memory_.stopped(peer)) break;
    peer = next;
  }
  return peer;
}

void PeerMonitor::leave() {
  failure_.adopt();
  if (failure_.failed()) return;  // keeps the failure for the other ranks to read
  status(rank_).state.store(GroupState::left);
  doorbell_.notify_all();
}

}  // namespace gradring::comm
