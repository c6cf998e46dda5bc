// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/mapped/bells.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "comm/transport/mapped/futex.h"

namespace gradring::comm {
namespace {

using Clock = std::chrono::steady_clock;

/// About what it costs to sleep and to be woken: who looks for so long and then sleeps loses at most as much again.
constexpr std::chrono::microseconds kPatience(20);

/// The cores that this process may run on.
int usable_cores() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

}  // namespace

Bells::Bells(std::vector<ControlBlock> blocks, int rank)
    : blocks_(std::move(blocks)), rank_(rank), crowded_(static_cast<int>(blocks_.size()) > usable_cores()) {}

bool Bells::may_look(std::span<const int> awaited) const {
  const int core = ::sched_getcpu();
  status(rank_).core.store(core, std::memory_order_relaxed);
  const auto is_here = [&](int peer) { return status(peer).core.load(std::memory_order_relaxed) == core; };
  return !crowded_ && std::ranges::none_of(awaited, is_here);
}

bool Bells::look(const std::function<bool()>& ready, std::span<const int> awaited) {
  if (!may_look(awaited)) return ready();
  const auto end = Clock::now() + kPatience;
  while (!ready())
    if (Clock::now() >= end) return false;
  return true;
}

void Bells::sleep(int peer, std::chrono::nanoseconds longest, const std::function<bool()>& awake) {
  ControlBlock::Status& mine = status(rank_);
  mine.waiting_for.store(peer);
  mine.sleeping.store(1);
  const std::uint32_t bell = mine.bell.load();
  if (!awake()) futex_wait(mine.bell, bell, longest);
  mine.sleeping.store(0);
}

void Bells::ring(int peer) const {
  ControlBlock::Status& theirs = status(peer);
  if (theirs.sleeping.load() == 0) return;
  const int awaited = theirs.waiting_for.load();
  if (awaited < 0 || awaited == rank_) wake(peer);
}

void Bells::ring_everybody() const {
  for (int peer = 0; peer < static_cast<int>(blocks_.size()); ++peer)
    if (peer != rank_ && status(peer).sleeping.load() != 0) wake(peer);
}

void Bells::wake(int peer) const {
  status(peer).bell.fetch_add(1);
  futex_wake(status(peer).bell);
}

}  // namespace gradring::comm
