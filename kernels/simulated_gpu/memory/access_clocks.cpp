// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/access_clocks.h"

#include <algorithm>
#include <bit>

namespace gradring::simulated_gpu {
namespace {

using Times = AccessClocks::Times;
using ThreadTimes = AccessClocks::ThreadTimes;

void raise(Times& times, const Times& to) {
  for (std::size_t i = 0; i < times.size(); ++i) times[i] = std::max(times[i], to[i]);
}

void raise(ThreadTimes& times, unsigned thread, std::uint32_t time) {
  const auto known = std::ranges::find(times, thread, &AccessClocks::ThreadTime::thread);
  if (known == times.end())
    times.push_back({thread, time});
  else
    known->time = std::max(known->time, time);
}

void raise(ThreadTimes& times, const ThreadTimes& to) {
  for (const auto& [thread, time] : to) raise(times, thread, time);
}

/// Whether the threads of a stamp are among these until its time. Of a stamp of several lanes it is not known which:
/// with two of the warp it counts as ordered, which is lenient.
bool covers(const ThreadTimes& times, Stamp stamp) {
  const Accessor accessor{who_of(stamp)};
  unsigned found = 0;
  for (const auto& [thread, time] : times)
    if (thread / kWarpSize == accessor.warp() && time >= time_of(stamp) &&
        (!accessor.is_thread() || thread == accessor.who))
      ++found;
  return found >= (accessor.is_thread() ? 1u : 2u);
}

}  // namespace

void AccessClocks::begin_block(unsigned warps, bool checks_races) {
  warps_ = warps;
  checks_races_ = checks_races;
  const std::uint32_t before = now_++;
  block_begin_ = now_ << Accessor::kBits;
  clock_.fill(now_);
  last_access_.fill(0);
  for (unsigned warp = 0; warp < warps_; ++warp) {
    known_[warp].others.fill(before);
    known_[warp].others[kRemote] = ~std::uint32_t{0};
    known_[warp].lanes = before;
    known_[warp].threads.clear();
    acquired_[warp].clear();
    known_[warp].bound = checks_races_ ? (now_ + 1) << Accessor::kBits : ~Stamp{0};  // as of update_bound()
  }
}

/// A block that synchronises a million times runs out of time: from then on races are not looked for in it.
std::uint32_t AccessClocks::advance() {
  if (now_ < kEnd) return ++now_;
  checks_races_ = false;
  for (unsigned warp = 0; warp < warps_; ++warp) update_bound(warp);
  return now_;
}

bool AccessClocks::is_ordered(Stamp stamp, unsigned warp, unsigned self, const Knowledge& knowledge) const {
  if (!checks_races_ || stamp < knowledge.bound) return true;
  if (who_of(stamp) == self && time_of(stamp) <= knowledge.own_until) return true;
  return time_of(stamp) <= knowledge.until(Accessor{who_of(stamp)}.warp(), warp) || covers(knowledge.threads, stamp);
}

bool AccessClocks::is_ordered(Stamp stamp, unsigned thread) const {
  const unsigned warp = thread / kWarpSize;
  if (is_ordered(stamp, warp, thread, known_[warp])) return true;
  const unsigned actor = Accessor{who_of(stamp)}.warp();
  return std::ranges::any_of(acquired_[warp], [&](const Acquired& acquired) {
    return (acquired.lanes & kLaneBits[thread % kWarpSize]) != 0 &&
           (time_of(stamp) <= acquired.released.times[actor] || covers(acquired.released.threads, stamp));
  });
}

std::uint64_t AccessClocks::unknown(std::uint64_t actors, unsigned warp, const Knowledge& knowledge) const {
  if (!checks_races_) return 0;
  std::uint64_t found = 0;
  for (; actors != 0; actors &= actors - 1) {
    const auto actor = static_cast<unsigned>(std::countr_zero(actors));
    if (last_access_[actor] > knowledge.until(actor, warp)) found |= std::uint64_t{1} << actor;
  }
  return found;
}

AccessClocks::Knowledge AccessClocks::at_start(unsigned warp, Mask lanes) {
  Knowledge knowledge = known_[warp];
  for (const Acquired& acquired : acquired_[warp])
    if ((lanes & ~acquired.lanes) == 0) {
      raise(knowledge.others, acquired.released.times);
      knowledge.lanes = std::max(knowledge.lanes, acquired.released.times[warp]);
      raise(knowledge.threads, acquired.released.threads);
    }
  knowledge.own_until = clock_[warp];
  clock_[warp] = advance();
  return knowledge;
}

void AccessClocks::restrict(Knowledge& knowledge, const Knowledge& other) {
  for (unsigned i = 0; i < knowledge.others.size(); ++i)
    knowledge.others[i] = std::min(knowledge.others[i], other.others[i]);
  knowledge.lanes = std::min(knowledge.lanes, other.lanes);
  knowledge.bound = std::min(knowledge.bound, other.bound);
  std::erase_if(knowledge.threads, [&](ThreadTime& mine) {
    const auto found = std::ranges::find(other.threads, mine.thread, &ThreadTime::thread);
    if (found != other.threads.end()) mine.time = std::min(mine.time, found->time);
    return found == other.threads.end();
  });
}

void AccessClocks::join(std::uint32_t warps) {
  const std::uint32_t before = now_;
  advance();
  Released all;
  for_each_lane(warps, [&](unsigned warp) {
    raise(all.times, known_[warp].others);
    raise(all.threads, known_[warp].threads);
    for (const Acquired& acquired : acquired_[warp]) add(all, acquired.released);
    acquired_[warp].clear();
  });
  for_each_lane(warps, [&](unsigned warp) { all.times[warp] = before; });
  std::erase_if(all.threads,
                [&](const ThreadTime& known) { return known.time <= all.times[known.thread / kWarpSize]; });
  for_each_lane(warps, [&](unsigned warp) {
    known_[warp].others = all.times;
    known_[warp].lanes = before;
    known_[warp].threads = all.threads;
    clock_[warp] = now_;
    update_bound(warp);
  });
}

void AccessClocks::order_lanes(unsigned warp, Mask lanes, bool all) {
  if (all) {
    for (const Acquired& acquired : acquired_[warp]) learn(warp, acquired.released);
    acquired_[warp].clear();
    known_[warp].lanes = now_;
  } else {
    Released released;
    released.times[warp] = known_[warp].lanes;
    for_each_lane(lanes, [&](unsigned lane) { raise(released.threads, warp * kWarpSize + lane, clock_[warp]); });
    for (const Acquired& acquired : acquired_[warp])
      if ((acquired.lanes & lanes) != 0) add(released, acquired.released);
    acquire(warp, lanes, false, released);
  }
  advance();
  clock_[warp] = now_;
  update_bound(warp);
}

void AccessClocks::add(Released& to, const Released& added) {
  raise(to.times, added.times);
  raise(to.threads, added.threads);
}

void AccessClocks::add_known(unsigned thread, bool whole, std::uint32_t until, Released& released) const {
  const unsigned warp = thread / kWarpSize;
  const Knowledge& known = known_[warp];
  raise(released.times, known.others);
  raise(released.threads, known.threads);
  for (const Acquired& acquired : acquired_[warp])
    if ((acquired.lanes & kLaneBits[thread % kWarpSize]) != 0) add(released, acquired.released);
  released.times[warp] = std::max(released.times[warp], whole ? until : known.lanes);
  if (!whole) raise(released.threads, thread, until);
}

void AccessClocks::release(unsigned thread, bool whole, Released& released) {
  const unsigned warp = thread / kWarpSize;
  add_known(thread, whole, clock_[warp], released);
  clock_[warp] = advance();
}

void AccessClocks::fence(unsigned warp, Mask lanes) {
  for_each_lane(lanes, [&](unsigned lane) { fences_[warp * kWarpSize + lane] = clock_[warp]; });
  if (last_access_[warp] == clock_[warp]) clock_[warp] = advance();  // later accesses have another time
}

bool AccessClocks::release_fenced(unsigned thread, Released& released) const {
  if (fences_[thread] < time_of(block_begin_)) return false;
  add_known(thread, false, fences_[thread], released);
  return true;
}

void AccessClocks::learn(unsigned warp, const Released& released) {
  Knowledge& known = known_[warp];
  raise(known.others, released.times);
  known.lanes = std::max(known.lanes, released.times[warp]);
  raise(known.threads, released.threads);
  std::erase_if(known.threads,
                [&](const ThreadTime& other) { return other.time <= known.until(other.thread / kWarpSize, warp); });
}

void AccessClocks::acquire(unsigned warp, Mask lanes, bool all, const Released& released) {
  if (all) {
    learn(warp, released);
    update_bound(warp);
    return;
  }
  for (Acquired& acquired : acquired_[warp])
    if (acquired.lanes == lanes) {
      add(acquired.released, released);
      return;
    }
  acquired_[warp].push_back({lanes, released});
}

void AccessClocks::fence_proxy(unsigned warp, Mask lanes) {
  for_each_lane(lanes, [&](unsigned lane) { fenced_[warp * kWarpSize + lane] = clock_[warp]; });
  const auto fence = [&](unsigned other, std::uint32_t until) {
    fenced_by_others_[other] = std::max(fenced_by_others_[other], until);
  };
  for (unsigned other = 0; other < warps_; ++other) fence(other, known_[warp].until(other, warp));
  for (const Acquired& acquired : acquired_[warp])
    if ((acquired.lanes & lanes) != 0)
      for (unsigned other = 0; other < warps_; ++other) fence(other, acquired.released.times[other]);
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
    const std::uint32_t until = knowledge.until(other, warp);
    if (last_access_[other] > until) known = std::min(known, until);  // else nothing is unknown
  }
  knowledge.bound = checks_races_ ? (known + 1) << Accessor::kBits : ~Stamp{0};
}

}  // namespace gradring::simulated_gpu
