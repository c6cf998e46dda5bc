// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/mapped/peer_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

#include "comm/transport/mapped/futex.h"

namespace gradring::comm {
namespace {

/// Ranks may outnumber the cores: spin only for as long as a message takes between two running ranks, then let others
/// run.
constexpr int kSpins = 500;
constexpr int kYields = 50;
/// How long a rank sleeps before it looks after its peers; nobody rings the bell for a rank that was killed.
constexpr std::chrono::milliseconds kNap(20);

std::string text(const Errand& errand) {
  return errand.number ? fmt::format("{} {}", errand.operation, errand.number) : std::string(errand.operation);
}

std::string waited(const Errand& errand) {
  const auto time = std::chrono::duration<double>(Deadline::Clock::now() - errand.since);
  return fmt::format("{:.1f} s", time.count());
}

}  // namespace

PeerWatch::PeerWatch(PeerMemory& memory, std::vector<ControlBlock> blocks)
    : memory_(memory), blocks_(std::move(blocks)), rank_(memory.rank()) {}

void PeerWatch::block_until(const std::function<bool()>& ready, const std::function<std::vector<int>()>& awaited,
                            Deadline deadline, const Errand& errand) {
  for (int turn = 0; turn < kSpins + kYields; ++turn) {
    if (ready()) return;
    if (turn >= kSpins) std::this_thread::yield();
  }
  ControlBlock::Status& mine = status(rank_);
  while (!ready()) {
    const std::vector<int> peers = awaited();
    mine.waiting_for.store(peers.empty() ? -1 : peers.front());
    look_after(ready, awaited, errand);
    mine.sleeping.store(1);
    const std::uint32_t bell = mine.bell.load();
    if (!ready() && !deadline.passed())
      futex_wait(mine.bell, bell, std::min<std::chrono::nanoseconds>(deadline.remaining(), kNap));
    mine.sleeping.store(0);
    if (!deadline.passed() || ready()) continue;
    look_after(ready, awaited, errand);  // who has failed first knows better whom to blame
    if (!ready()) time_out(awaited(), errand);
  }
  mine.waiting_for.store(-1);
}

void PeerWatch::look_after(const std::function<bool()>& ready, const std::function<std::vector<int>()>& awaited,
                           const Errand& errand) {
  for (int peer = 0; peer < memory_.world_size(); ++peer) {
    const Membership membership = status(peer).membership.load();
    const bool dead = membership == Membership::member && memory_.gone(peer);
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

void PeerWatch::ring(int peer) const {
  ControlBlock::Status& theirs = status(peer);
  if (theirs.sleeping.load() == 0) return;
  theirs.bell.fetch_add(1);
  futex_wake(theirs.bell);
}

void PeerWatch::ring_everybody() const {
  for (int peer = 0; peer < memory_.world_size(); ++peer)
    if (peer != rank_) ring(peer);
}

void PeerWatch::leave() {
  if (broken_) return;  // the reason of the failure stays there for the others to read
  status(rank_).membership.store(Membership::left);
  ring_everybody();
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
  ring_everybody();
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
