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
  last_access_.fill(0);
  has_released_ = false;
  for (unsigned warp = 0; warp < warps_; ++warp) {
    known_[warp].others.fill(before);
    known_[warp].lanes = before;
    update_bound(warp);
  }
}

/// A block that synchronises a million times runs out of time: from then on races are not looked for in it.
std::uint32_t AccessClocks::advance() {
  if (now_ < kEnd) return ++now_;
  checks_races_ = false;
  for (unsigned warp = 0; warp < warps_; ++warp) update_bound(warp);
  return now_;
}

void AccessClocks::begin_again() {
  now_ = 0;
  last_access_.fill(0);
  fenced_.fill(0);
  fenced_by_others_.fill(0);
}

bool AccessClocks::is_ordered(Stamp stamp, unsigned warp, unsigned self, const Knowledge& knowledge) const {
  if (!checks_races_ || stamp < knowledge.bound || who_of(stamp) == self) return true;
  const unsigned other = Accessor{who_of(stamp)}.warp();
  // Of several warps, the last one's time is known: where mbarriers order, some of them may be known up to another
  // time.
  if (other >= knowledge.others.size())
    return has_released_ && time_of(stamp) <= *std::ranges::max_element(knowledge.others);
  return time_of(stamp) <= (other == warp ? knowledge.lanes : knowledge.others[other]);
}

AccessClocks::Knowledge AccessClocks::with_own(unsigned warp) const {
  Knowledge knowledge = known_[warp];
  knowledge.others[warp] = knowledge.lanes;
  return knowledge;
}

void AccessClocks::restrict(Knowledge& knowledge, const Knowledge& other) {
  for (unsigned i = 0; i < knowledge.others.size(); ++i)
    knowledge.others[i] = std::min(knowledge.others[i], other.others[i]);
  knowledge.lanes = std::min(knowledge.lanes, other.lanes);
  knowledge.bound = std::min(knowledge.bound, other.bound);
}

void AccessClocks::join(std::uint32_t warps) {
  const std::uint32_t before = now_;
  advance();
  Times all{};
  for_each_lane(warps, [&](unsigned warp) {
    for (unsigned other = 0; other < all.size(); ++other) all[other] = std::max(all[other], known_[warp].others[other]);
  });
  for_each_lane(warps, [&](unsigned warp) { all[warp] = before; });
  for_each_lane(warps, [&](unsigned warp) {
    known_[warp].others = all;
    known_[warp].lanes = before;
    clock_[warp] = now_;
    update_bound(warp);
  });
}

void AccessClocks::order_lanes(unsigned warp) {
  known_[warp].lanes = now_;
  advance();
  clock_[warp] = now_;
  update_bound(warp);
}

void AccessClocks::release(unsigned warp, Times& released) {
  has_released_ = true;
  for (unsigned other = 0; other < released.size(); ++other)
    released[other] = std::max(released[other], known_[warp].others[other]);
  released[warp] = std::max(released[warp], clock_[warp]);
  clock_[warp] = advance();
}

void AccessClocks::acquire(unsigned warp, const Times& released) {
  for (unsigned other = 0; other < released.size(); ++other)
    known_[warp].others[other] = std::max(known_[warp].others[other], released[other]);
  known_[warp].lanes = std::max(known_[warp].lanes, released[warp]);
  update_bound(warp);
}

Stamp AccessClocks::act(unsigned engine, Times& released) {
  last_access_[engine] = released[engine] = advance();
  return now_ << Accessor::kBits | (Accessor::kSeveralLanes + engine);
}

void AccessClocks::fence_proxy(unsigned warp, Mask lanes) {
  for_each_lane(lanes, [&](unsigned lane) { fenced_[warp * kWarpSize + lane] = clock_[warp]; });
  for (unsigned other = 0; other < warps_; ++other) {
    const std::uint32_t known = other == warp ? known_[warp].lanes : known_[warp].others[other];
    fenced_by_others_[other] = std::max(fenced_by_others_[other], known);
  }
  clock_[warp] = advance();  // later writes have another time
}

bool AccessClocks::is_fenced(Stamp write) const {
  const Accessor writer{who_of(write)};
  if (!checks_races_ || writer.warp() >= kMostWarps) return true;
  const std::uint32_t own = writer.is_thread() ? fenced_[writer.who] : 0;
  return time_of(write) <= std::max(own, fenced_by_others_[writer.warp()]);
}

void AccessClocks::update_bound(unsigned warp) {
  Knowledge& knowledge = known_[warp];
  std::uint32_t known = now_;
  for (unsigned other = 0; other < last_access_.size(); ++other) {
    const std::uint32_t until = other == warp ? knowledge.lanes : knowledge.others[other];
    if (last_access_[other] > until) known = std::min(known, until);  // else nothing is unknown
  }
  knowledge.bound = checks_races_ ? (known + 1) << Accessor::kBits : ~Stamp{0};
}

}  // namespace gradring::simulated_gpu
