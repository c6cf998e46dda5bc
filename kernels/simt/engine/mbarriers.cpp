// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "kernels/simt/engine/block.h"
#include "kernels/simt/engine/sanitizer.h"

namespace gradring::simt::detail {
namespace {

constexpr std::int64_t kMostBytes = (1 << 20) - 1;  // the tx-count of PTX

}  // namespace

Mbarriers::Mbarrier& Mbarriers::find(const Fiber& me, Block& block, const void* address) {
  for (unsigned i = 0; i < count_; ++i)
    if (barriers_[i].address == address) return barriers_[i];
  block.fail(me.site, "mbarrier not initialised by this block: %s", describe(me).text);
}

void Mbarriers::init(const Fiber& me, Block& block, const void* address, unsigned arrivals) {
  for (unsigned i = 0; i < count_; ++i)
    if (barriers_[i].address == address) block.fail(me.site, "mbarrier initialised twice: %s", describe(me).text);
  if (arrivals == 0 || count_ == kMost)
    block.fail(me.site,
               "bad mbarrier: %u arrivals, expected at least 1; %u others in this block, expected fewer than %u: %s",
               arrivals, count_, kMost, describe(me).text);
  barriers_[count_++] = {.address = address, .arrivals = arrivals, .missing_arrivals = arrivals};
}

void Mbarriers::arrive(const Fiber& me, Block& block, const void* address, std::int64_t expected_bytes) {
  Mbarrier& barrier = find(me, block, address);
  if (barrier.missing_arrivals == 0)
    block.fail(me.site, "too many arrivals at an mbarrier: all %u have arrived, and it waits for bytes: %s",
               barrier.arrivals, describe(me).text);
  barrier.missing_bytes += expected_bytes;
  if (barrier.missing_bytes > kMostBytes)
    block.fail(me.site, "an mbarrier waits for %lld bytes, expected at most %lld: %s",
               static_cast<long long>(barrier.missing_bytes), static_cast<long long>(kMostBytes), describe(me).text);
  --barrier.missing_arrivals;
  release(&barrier.edges[barrier.phase & 1]);
  end_phase_if_complete(barrier, block);
}

void Mbarriers::land(const Fiber& me, Block& block, const void* address, std::int64_t bytes) {
  Mbarrier& barrier = find(me, block, address);
  if (bytes > barrier.missing_bytes)
    block.fail(me.site, "%lld bytes arrive at an mbarrier that waits for %lld: %s", static_cast<long long>(bytes),
               static_cast<long long>(barrier.missing_bytes), describe(me).text);
  barrier.missing_bytes -= bytes;
  release(&barrier.edges[barrier.phase & 1]);
  end_phase_if_complete(barrier, block);
}

void Mbarriers::end_phase_if_complete(Mbarrier& barrier, Block& block) {
  if (barrier.missing_arrivals != 0 || barrier.missing_bytes != 0) return;
  ++barrier.phase;
  barrier.missing_arrivals = barrier.arrivals;
  const auto index = static_cast<unsigned>(&barrier - barriers_.data());
  unsigned kept = 0;
  for (unsigned i = 0; i < waiting_count_; ++i) {
    if (waiting_[i].barrier == index)
      block.wake(*waiting_[i].fiber);
    else
      waiting_[kept++] = waiting_[i];
  }
  waiting_count_ = kept;
}

void Mbarriers::wait(Fiber& me, Block& block, const void* address, unsigned parity) {
  Mbarrier& barrier = find(me, block, address);
  if (parity > 1) block.fail(me.site, "mbarrier parity is %u, expected 0 or 1: %s", parity, describe(me).text);
  if ((barrier.phase & 1) == parity) {
    waiting_[waiting_count_++] = {&me, static_cast<unsigned>(&barrier - barriers_.data())};
    block.park(me);
  }
  acquire(&barrier.edges[parity]);
}

void Mbarriers::say_what_is_missing(char* text, std::size_t bytes) const {
  const Mbarrier& barrier = barriers_[waiting_[0].barrier];
  std::snprintf(text, bytes, ", which lacks %u of %u arrival(s) and %lld byte(s)", barrier.missing_arrivals,
                barrier.arrivals, static_cast<long long>(barrier.missing_bytes));
}

}  // namespace gradring::simt::detail
