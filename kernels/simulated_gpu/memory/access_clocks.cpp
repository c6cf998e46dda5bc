// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/access_clocks.h"

#include <algorithm>

namespace gradring::simulated_gpu {

void AccessClocks::begin_block(unsigned warps, bool checks_races) {
  warps_ = warps;
  checks_races_ = checks_races;
  const std::uint32_t before = now_++;
  block_begin_ = now_ << Accessor::kBits;
  clock_.fill(now_);
  lanes_ordered_.fill(before);
  for (Times& times : known_) times.fill(before);
  for (unsigned warp = 0; warp < warps_; ++warp) update_bound(warp);
}

void AccessClocks::begin_again() { now_ = 0; }

bool AccessClocks::is_ordered(Stamp stamp, unsigned thread) const {
  if (!checks_races_ || stamp < block_begin_ || who_of(stamp) == thread) return true;
  const unsigned warp = Accessor{who_of(stamp)}.warp();
  if (warp >= kMostWarps) return stamp < ordered_before(thread);
  if (warp == thread / 32) return time_of(stamp) <= lanes_ordered_[warp];
  return time_of(stamp) <= known_[thread / 32][warp];
}

void AccessClocks::join(std::uint32_t warps) {
  const std::uint32_t before = now_++;
  Times all{};
  for (unsigned warp = 0; warp < warps_; ++warp)
    if ((warps >> warp & 1) != 0)
      for (unsigned other = 0; other < warps_; ++other) all[other] = std::max(all[other], known_[warp][other]);
  for (unsigned warp = 0; warp < warps_; ++warp)
    if ((warps >> warp & 1) != 0) all[warp] = before;
  for (unsigned warp = 0; warp < warps_; ++warp)
    if ((warps >> warp & 1) != 0) {
      known_[warp] = all;
      lanes_ordered_[warp] = before;
      clock_[warp] = now_;
      update_bound(warp);
    }
}

void AccessClocks::order_lanes(unsigned warp) {
  lanes_ordered_[warp] = now_++;
  clock_[warp] = now_;
  update_bound(warp);
}

AccessClocks::Times AccessClocks::release(unsigned warp) {
  Times released = known_[warp];
  released[warp] = clock_[warp];
  clock_[warp] = ++now_;
  return released;
}

void AccessClocks::acquire(unsigned warp, const Times& released) {
  for (unsigned other = 0; other < warps_; ++other)
    known_[warp][other] = std::max(known_[warp][other], released[other]);
  update_bound(warp);
}

void AccessClocks::update_bound(unsigned warp) {
  std::uint32_t known = lanes_ordered_[warp];
  for (unsigned other = 0; other < warps_; ++other)
    if (other != warp) known = std::min(known, known_[warp][other]);
  ordered_before_[warp] = checks_races_ ? (known + 1) << Accessor::kBits : ~Stamp{0};
}

}  // namespace gradring::simulated_gpu
