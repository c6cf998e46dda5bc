// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/mapped/peer_watch.h"

#include <algorithm>

namespace gradring::comm {
namespace {

/// How long a rank sleeps, at most, and how often it asks the system whether its peers live: nobody rings the bell for a
/// rank that was killed.
constexpr std::chrono::milliseconds kNap(20);

int first(const std::vector<int>& peers) { return peers.empty() ? -1 : peers.front(); }

}  // namespace

PeerWatch::PeerWatch(PeerMemory& memory, std::vector<ControlBlock> blocks)
    : memory_(memory),
      blocks_(std::move(blocks)),
      rank_(memory.rank()),
      bells_(blocks_, rank_),
      failure_(
          rank_, [this](int peer) { return memory_.describe(peer); },
          [this](Membership reason, int culprit) {
            status(rank_).culprit.store(culprit);
            status(rank_).membership.store(reason);
            bells_.ring_everybody();
          }) {}

void PeerWatch::block_until(const std::function<bool()>& ready, const std::function<std::vector<int>()>& awaited,
                            Deadline deadline, const Errand& errand) {
  if (ready() || bells_.look(ready, awaited())) return;
  while (!ready()) {
    const int needed = first(awaited());
    // Awake too if that rank has just done its part and another is missing: nobody would ring for that one.
    bells_.sleep(needed, std::min<std::chrono::nanoseconds>(deadline.remaining(), kNap),
                 [&] { return ready() || first(awaited()) != needed || deadline.passed(); });
    if (ready()) break;
    if (deadline.passed()) next_roll_call_ = {};
    look_after(ready, awaited, errand);  // who has failed first knows better whom to blame
    if (deadline.passed() && !ready()) time_out(awaited(), errand);
  }
  status(rank_).waiting_for.store(-1);
}

void PeerWatch::look_after(const std::function<bool()>& ready, const std::function<std::vector<int>()>& awaited,
                           const Errand& errand) {
  const bool roll_call = Deadline::Clock::now() >= next_roll_call_;
  if (roll_call) next_roll_call_ = Deadline::Clock::now() + kNap;
  for (int peer = 0; peer < memory_.world_size(); ++peer) {
    const Membership membership = status(peer).membership.load();
    const bool dead = roll_call && membership == Membership::member && memory_.gone(peer);
    if (peer == rank_ || (membership == Membership::member && !dead)) continue;
    // Its last deeds count: they were done before it left, and are seen now if they were not before.
    if (ready()) return;
    const std::vector<int> needed = awaited();
    if (dead) blame_the_dead(errand);
    if (membership != Membership::left) failure_.follow(peer, membership, status(peer).culprit.load(), errand);
    if (std::ranges::find(needed, peer) == needed.end()) continue;
    blame_the_dead(errand);
    failure_.miss(peer, errand);
  }
}

/// Throws if any rank has died. Who left may have done so because it missed that one, in the other of a process group's two
/// transports.
void PeerWatch::blame_the_dead(const Errand& errand) {
  std::vector<int> dead;
  for (int peer = 0; peer < memory_.world_size(); ++peer)
    if (peer != rank_ && status(peer).membership.load() == Membership::member && memory_.gone(peer))
      dead.push_back(peer);
  if (!dead.empty()) failure_.lose(dead.front(), "died", errand, {dead.begin() + 1, dead.end()});
}

void PeerWatch::time_out(const std::vector<int>& awaited, const Errand& errand) {
  const int culprit = awaited.empty() ? -1 : last_in_line(awaited.front());
  const bool stopped = culprit >= 0 && memory_.stopped(culprit);
  failure_.time_out(awaited, culprit,
                    stopped ? "is stopped by a signal; continue it (kill -CONT) or end the job"
                            : "is slow or never came; look at its log, or raise the timeout",
                    errand);
}

/// Follows who waits for whom, from `peer` on, to the rank that waits for nobody or cannot run: the one to look at.
int PeerWatch::last_in_line(int peer) const {
  for (int hops = 0; hops < memory_.world_size(); ++hops) {
    const int next = status(peer).waiting_for.load();
    if (next < 0 || next == rank_ || memory_.stopped(peer)) break;
    peer = next;
  }
  return peer;
}

void PeerWatch::leave() {
  if (failure_.broken()) return;  // the reason of the failure stays there for the others to read
  status(rank_).membership.store(Membership::left);
  bells_.ring_everybody();
}

}  // namespace gradring::comm
