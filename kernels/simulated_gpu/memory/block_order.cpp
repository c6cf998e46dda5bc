// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/block_order.h"

#include <algorithm>
#include <utility>

namespace gradring::simulated_gpu {
namespace {

constexpr std::size_t kMostRuns = 8192;

}  // namespace

bool BlockClock::knows(std::uint64_t block, std::uint32_t segment) const {
  if (knows_all_) return true;
  const auto next = std::ranges::upper_bound(runs_, block, {}, &Run::first);
  if (next == runs_.begin()) return false;
  const Run& run = *std::prev(next);
  return block < run.end && segment < run.until;
}

bool BlockClock::add(const BlockClock& other) {
  if (knows_all_) return false;
  if (other.knows_all_) return knows_all_ = true;
  std::vector<Run> all;
  const auto append = [&](const Run& run) {
    if (!all.empty() && all.back().end == run.first && all.back().until == run.until)
      all.back().end = run.end;
    else
      all.push_back(run);
  };
  std::size_t i = 0;
  std::size_t k = 0;
  std::uint64_t from = 0;  // of the run that is open
  while (i < runs_.size() || k < other.runs_.size()) {
    const Run* const a = i < runs_.size() ? &runs_[i] : nullptr;
    const Run* const b = k < other.runs_.size() ? &other.runs_[k] : nullptr;
    const std::uint64_t a_first = a == nullptr ? ~std::uint64_t{0} : std::max(a->first, from);
    const std::uint64_t b_first = b == nullptr ? ~std::uint64_t{0} : std::max(b->first, from);
    if (a_first == b_first) {
      const std::uint64_t end = std::min(a->end, b->end);
      append({a_first, end, std::max(a->until, b->until)});
      from = end;
    } else {
      const Run& low = a_first < b_first ? *a : *b;
      const std::uint64_t end = std::min(low.end, std::max(a_first, b_first));
      append({std::min(a_first, b_first), end, low.until});
      from = end;
    }
    if (a != nullptr && a->end <= from) ++i;
    if (b != nullptr && b->end <= from) ++k;
  }
  if (all.size() > kMostRuns) return knows_all_ = true;
  if (all == runs_) return false;
  runs_ = std::move(all);
  return true;
}

BlockOrder::Clock BlockOrder::keep(BlockClock clock) {
  return budget_.take(clock.bytes()) ? std::make_shared<const BlockClock>(std::move(clock)) : everything_;
}

void BlockOrder::publish(std::uint64_t address, const Clock& known, bool is_update) {
  const std::lock_guard lock(mutex_);
  if (known == nullptr) {
    if (!is_update) budget_.give_back(locations_.erase(address) * kLocationBytes);
    return;
  }
  is_used_.store(true, std::memory_order_release);
  const auto found = locations_.find(address);
  if (found == locations_.end()) {
    if (budget_.take(kLocationBytes))
      locations_.emplace(address, known);
    else
      is_full_ = true;
    return;
  }
  Clock& location = found->second;
  if (!is_update) {
    location = known;
    return;
  }
  BlockClock all = *location;
  if (all.add(*known)) location = keep(std::move(all));
}

BlockOrder::Clock BlockOrder::published(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto found = locations_.find(address);
  if (found != locations_.end()) return found->second;
  return is_full_ ? everything_ : nullptr;
}

}  // namespace gradring::simulated_gpu
