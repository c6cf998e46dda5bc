// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/mapped/doorbell.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <ctime>
#include <tuple>
#include <utility>

#include "kernels/base/processors.h"

namespace gradring::comm {
namespace {

using Clock = std::chrono::steady_clock;

/// About the cost of a park and a wake-up, so that spinning first at most doubles the wait.
constexpr std::chrono::microseconds kSpinTime(20);

constexpr int kWordBits = 64;

// Futex calls, because std::atomic::wait does not support memory that processes share.

/// Blocks while `word` holds `expected`, for at most `longest`; may return early.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::chrono::nanoseconds longest) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest);
  const timespec timeout{static_cast<std::time_t>(seconds.count()), static_cast<long>((longest - seconds).count())};
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// Stores the affinity mask of the calling thread; no bits if the kernel does not report it.
void publish_cores(ControlBlock::CoreBits& bits) {
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

Doorbell::Doorbell(std::vector<ControlBlock> blocks, int rank) : blocks_(std::move(blocks)), rank_(rank) {
  publish_cores(status(rank_).cores);
  status(rank_).cores_known.store(true, std::memory_order_release);
}

/// Counts the union of all ranks' cores, because ranks with CPU affinity have few each, up to the CPU quota, which
/// spinning ranks would spend.
bool Doorbell::oversubscribed() {
  if (oversubscribed_) return *oversubscribed_;
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
  oversubscribed_ = static_cast<int>(blocks_.size()) > Processors{.affinity = cores, .quota = cpu_quota()}.usable();
  return *oversubscribed_;
}

bool Doorbell::may_spin(std::span<const int> awaited) {
  const int core = ::sched_getcpu();
  status(rank_).core.store(core, std::memory_order_relaxed);
  const auto is_here = [&](int peer) { return status(peer).core.load(std::memory_order_relaxed) == core; };
  return !oversubscribed() && std::ranges::none_of(awaited, is_here);
}

bool Doorbell::spin(const std::function<bool()>& ready, std::span<const int> awaited) {
  if (!may_spin(awaited)) return ready();
  const auto end = Clock::now() + kSpinTime;
  while (!ready())
    if (Clock::now() >= end) return false;
  return true;
}

bool Doorbell::park(int peer, std::chrono::nanoseconds longest, const std::function<bool()>& awake) {
  ControlBlock::Status& mine = status(rank_);
  mine.waiting_for.store(peer);
  mine.parked.store(1);
  if (!awake()) futex_wait(mine.doorbell, heard_, longest);
  mine.parked.store(0);
  const std::uint32_t before = std::exchange(heard_, mine.doorbell.load());
  return heard_ != before;
}

void Doorbell::notify(int peer) const {
  ControlBlock::Status& theirs = status(peer);
  if (theirs.parked.load() == 0) return;
  const int awaited = theirs.waiting_for.load();
  if (awaited < 0 || awaited == rank_) wake(peer);
}

void Doorbell::notify_all() const {
  for (int peer = 0; peer < static_cast<int>(blocks_.size()); ++peer)
    if (peer != rank_) wake(peer);
}

void Doorbell::wake(int peer) const {
  status(peer).doorbell.fetch_add(1);
  if (status(peer).parked.load() != 0) futex_wake(status(peer).doorbell);
}

}  // namespace gradring::comm
