// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/shared_order.h"

#include <algorithm>

namespace gradring::simulated_gpu {

void SharedOrder::clear() {
  has_fenced_ = false;
  words_.clear();
  for (std::vector<Observed>& observed : observed_) observed.clear();
}

void SharedOrder::fence(unsigned warp, Mask lanes, bool all) {
  for (Observed& observed : observed_[warp]) {
    const Mask learning = observed.lanes & lanes;
    if (learning != 0) clocks_.acquire(warp, learning, all && learning == lanes, observed.published);
    observed.lanes &= ~lanes;
  }
  std::erase_if(observed_[warp], [](const Observed& observed) { return observed.lanes == 0; });
  clocks_.fence(warp, lanes);
  has_fenced_ = true;
}

void SharedOrder::write(std::uint64_t address, unsigned warp, Mask lanes, bool all, bool releases, bool is_update) {
  const auto before = words_.find(address);
  AccessClocks::Released published;
  if (is_update && before != words_.end()) published = before->second.published;
  bool publishes = releases;
  if (releases && all)
    clocks_.release(warp * kWarpSize + lowest_lane(lanes), true, published);
  else
    for_each_lane(lanes, [&](unsigned lane) {
      const unsigned thread = warp * kWarpSize + lane;
      if (releases)
        clocks_.release(thread, false, published);
      else
        publishes |= clocks_.release_fenced(thread, published);
    });
  if (publishes)
    words_[address] = {.published = std::move(published)};
  else if (!is_update && before != words_.end())
    words_.erase(before);
}

void SharedOrder::read(std::uint64_t address, unsigned warp, Mask lanes, bool all, bool acquires) {
  const auto found = words_.find(address);
  if (found == words_.end()) return;
  Word& word = found->second;
  if (acquires) {
    if ((lanes & ~word.acquired[warp]) == 0) return;
    word.acquired[warp] |= lanes;
    clocks_.acquire(warp, lanes, all, word.published);
    return;
  }
  if ((lanes & ~(word.acquired[warp] | word.observed[warp])) == 0) return;
  word.observed[warp] |= lanes;
  const auto same = std::ranges::find(observed_[warp], lanes, &Observed::lanes);
  if (same == observed_[warp].end())
    observed_[warp].push_back({lanes, word.published});
  else
    AccessClocks::add(same->published, word.published);
}

}  // namespace gradring::simulated_gpu
