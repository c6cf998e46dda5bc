// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/mapped/peer_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gradring::comm {
namespace {

/// How long a rank sleeps, at most, and how often it asks the system whether its peers live: nobody rings the bell for a
/// rank that was killed.
constexpr std::chrono::milliseconds kNap(20);

std::string text(const Errand& errand) {
  return errand.number ? fmt::format("{} {}", errand.operation, errand.number) : std::string(errand.operation);
}

std::string waited(const Errand& errand) {
  const auto time = std::chrono::duration<double>(Deadline::Clock::now() - errand.since);
  return fmt::format("{:.1f} s", time.count());
}

int first(const std::vector<int>& peers) { return peers.empty() ? -1 : peers.front(); }

}  // namespace

PeerWatch::PeerWatch(PeerMemory& memory, std::vector<ControlBlock> blocks)
    : memory_(memory), blocks_(std::move(blocks)), rank_(memory.rank()), bells_(blocks_, rank_) {}

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
    if (dead)
      fail<PeerLost>(Membership::lost_peer, peer,
                     fmt::format("{} died while rank {} waited in {}, step {}: look at its log or its exit status",
                                 name_of(peer), rank_, text(errand), errand.step),
                     errand);
    if (membership != Membership::left) follow(peer, membership, errand);
    if (std::find(needed.begin(), needed.end(), peer) != needed.end())
      fail<PeerLost>(Membership::lost_peer, peer,
                     fmt::format("{} left the group while rank {} waited for it in {}, step {}: look at its log",
                                 name_of(peer), rank_, text(errand), errand.step),
                     errand);
  }
}

void PeerWatch::follow(int reporter, Membership reason, const Errand& errand) {
  const int culprit = status(reporter).culprit.load();
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

void PeerWatch::time_out(const std::vector<int>& awaited, const Errand& errand) {
  const int culprit = awaited.empty() ? -1 : last_in_line(awaited.front());
  const bool stopped = culprit >= 0 && memory_.stopped(culprit);
  const std::string line = awaited.empty() || culprit == awaited.front()
                               ? ""
                               : fmt::format(" (the line of those who wait ends at rank {})", culprit);
  fail<Timeout>(Membership::timed_out, culprit,
                fmt::format("rank {} waited {} for rank {} in {}, step {}{}: {} {}", rank_, waited(errand),
                            fmt::join(awaited, ", "), text(errand), errand.step, line, name_of(culprit),
                            stopped ? "is stopped by a signal; continue it (kill -CONT) or end the job"
                                    : "is slow or never came; look at its log, or raise the timeout"),
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
  if (broken_) return;  // the reason of the failure stays there for the others to read
  status(rank_).membership.store(Membership::left);
  bells_.ring_everybody();
}

void PeerWatch::report_desync(int peer, const std::string& message, const Errand& errand) {
  fail<Desync>(Membership::out_of_step, peer, message, errand);
}

template <class E>
void PeerWatch::fail(Membership reason, int culprit, const std::string& message, const Errand& errand) {
  const E error({rank_, culprit, text(errand), errand.step}, message);
  broken_ = std::make_exception_ptr(error);
  status(rank_).culprit.store(culprit);
  status(rank_).membership.store(reason);
  bells_.ring_everybody();
  throw error;
}

void PeerWatch::refuse_if_broken() const {
  if (broken_) std::rethrow_exception(broken_);
}

std::string PeerWatch::name_of(int peer) const {
  if (peer < 0) return "an unknown rank";
  return fmt::format("rank {} ({})", peer, memory_.describe(peer));
}

}  // namespace gradring::comm
