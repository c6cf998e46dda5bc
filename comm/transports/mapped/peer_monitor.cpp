// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/mapped/peer_monitor.h"

#include <algorithm>

namespace gradring::comm {
namespace {

/// The longest park, and the interval of liveness checks: a killed rank notifies nobody.
constexpr std::chrono::milliseconds kCheckInterval(20);

int first(const std::vector<int>& peers) { return peers.empty() ? -1 : peers.front(); }

}  // namespace

PeerMonitor::PeerMonitor(PeerMemory& memory, std::vector<ControlBlock> blocks)
    : memory_(memory),
      blocks_(std::move(blocks)),
      rank_(memory.rank()),
      doorbell_(blocks_, rank_),
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
  while (!ready()) {
    const int needed = first(awaited());
    // Also awake if `needed` has just done its part and another rank is missing: that one would not notify.
    doorbell_.park(needed, deadline.nap(kCheckInterval),
                   [&] { return ready() || first(awaited()) != needed || deadline.passed(); });
    if (ready()) break;
    if (deadline.passed()) next_liveness_check_ = {};
    check_peers(ready, awaited, op);  // before the timeout: an earlier failure names the root cause
    if (deadline.passed() && !ready()) throw_timeout(awaited(), op);
  }
  status(rank_).waiting_for.store(-1);
}

void PeerMonitor::check_peers(const std::function<bool()>& ready, const std::function<std::vector<int>()>& awaited,
                              const PendingOp& op) {
  failure_.adopt_and_throw_if_failed();
  const bool check_liveness = Deadline::Clock::now() >= next_liveness_check_;
  if (check_liveness) next_liveness_check_ = Deadline::Clock::now() + kCheckInterval;
  for (int peer = 0; peer < memory_.world_size(); ++peer) {
    const GroupState state = status(peer).state.load();
    const bool dead = check_liveness && state == GroupState::member && memory_.gone(peer);
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
}

/// A rank may have left normally before it could notice the death, so death comes first.
void PeerMonitor::throw_if_peer_died(const PendingOp& op) {
  std::vector<int> dead;
  for (int peer = 0; peer < memory_.world_size(); ++peer)
    if (peer != rank_ && status(peer).state.load() == GroupState::member && memory_.gone(peer)) dead.push_back(peer);
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
