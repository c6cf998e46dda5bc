// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/mapped/bells.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "comm/transport/mapped/futex.h"

namespace gradring::comm {
namespace {

using Clock = std::chrono::steady_clock;

/// About what it costs to sleep and to be woken: who looks for so long and then sleeps loses at most as much again.
constexpr std::chrono::microseconds kPatience(20);

constexpr int kWordBits = 64;

/// Writes down where the calling thread may run; nowhere if the system does not tell.
void say_cores(ControlBlock::CoreBits& bits) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  for (std::size_t word = 0; word < bits.size(); ++word) {
    std::uint64_t found = 0;
    for (int bit = 0; bit < kWordBits; ++bit)
      if (CPU_ISSET(word * kWordBits + static_cast<std::size_t>(bit), &usable)) found |= std::uint64_t{1} << bit;
    bits[word].store(found, std::memory_order_relaxed);
  }
}

}  // namespace

Bells::Bells(std::vector<ControlBlock> blocks, int rank) : blocks_(std::move(blocks)), rank_(rank) {
  say_cores(status(rank_).cores);
  status(rank_).cores_known.store(true, std::memory_order_release);
}

/// Counts the cores of all ranks, since ranks that are bound have few each.
bool Bells::crowded() {
  if (crowded_) return *crowded_;
  const auto known = [](const ControlBlock& block) {
    return block.status().cores_known.load(std::memory_order_acquire);
  };
  if (!std::ranges::all_of(blocks_, known)) return true;
  int cores = 0;
  for (std::size_t word = 0; word < std::tuple_size_v<ControlBlock::CoreBits>; ++word) {
    std::uint64_t usable = 0;
    for (const ControlBlock& block : blocks_) usable |= block.status().cores[word].load(std::memory_order_relaxed);
    cores += std::popcount(usable);
  }
  crowded_ = static_cast<int>(blocks_.size()) > cores;
  return *crowded_;
}

bool Bells::may_look(std::span<const int> awaited) {
  const int core = ::sched_getcpu();
  status(rank_).core.store(core, std::memory_order_relaxed);
  const auto is_here = [&](int peer) { return status(peer).core.load(std::memory_order_relaxed) == core; };
  return !crowded() && std::ranges::none_of(awaited, is_here);
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
