// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/access_log.h"

#include <algorithm>
#include <set>
#include <utility>

namespace gradring::simulated_gpu {
namespace {

/// Looked at for all races of a launch; those behind them are mostly of the same instructions.
constexpr std::size_t kMostConflicts = std::size_t{1} << 20;

}  // namespace

void ByteSet::grow() {
  slots_.assign(std::max<std::size_t>(4 * pages_.size(), 64), 0);
  for (std::size_t i = 0; i < pages_.size(); ++i) slot_of(pages_[i].number) = static_cast<std::uint32_t>(i + 1);
}

void ByteSet::add(const ByteSet& other) {
  for (const Page& added : other.pages_) {
    Page& own = page(added.number);
    for (std::size_t word = 0; word < own.bits.size(); ++word) own.bits[word] |= added.bits[word];
  }
}

std::uint64_t ByteSet::size() const {
  std::uint64_t count = 0;
  for (const Page& page : pages_)
    for (const std::uint64_t word : page.bits) count += static_cast<unsigned>(std::popcount(word));
  return count;
}

void AccessLog::finish() {
  std::ranges::sort(writes_, {}, &Access::first);
  furthest_.resize(writes_.size());
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < writes_.size(); ++i) {
    writes_overlap_ |= writes_[i].first < end;
    furthest_[i] = end = std::max(end, writes_[i].end);
  }
}

/// Calls visit(conflict) for writes and `others` that overlap and are not ordered, until it returns false; whether it never did.
template <class Visit>
bool AccessLog::visit_overlaps(const std::vector<Access>& others, const Visit& visit) const {
  const auto counts = [](const Access& write, const Access& other) {
    return write.block != other.block && other.block != kAllBlocks && !(write.is_strong && other.is_strong) &&
           !(write.is_fenced && other.is_fenced);
  };
  for (const Access& other : others) {
    auto i =
        static_cast<std::size_t>(std::ranges::lower_bound(writes_, other.end, {}, &Access::first) - writes_.begin());
    for (; i > 0 && furthest_[i - 1] > other.first; --i) {
      const Access& write = writes_[i - 1];
      if (write.end > other.first && counts(write, other) &&
          !visit(Conflict{write, other, std::max(write.first, other.first), std::min(write.end, other.end)}))
        return false;
    }
  }
  return true;
}

/// The same for all of the log.
template <class Visit>
bool AccessLog::visit_conflicts(const Visit& visit) const {
  if (!writes_overlap_) return visit_overlaps(reads_, visit);
  // Of strong writes of the same bytes, those of two blocks say as much as all: with thousands of blocks, pairs would
  // be too many.
  AccessLog distinct;
  std::size_t equal = 0;  // strong writes of the bytes of the last one that are kept
  for (const Access& write : writes_) {
    const Access* const last = distinct.writes_.empty() ? nullptr : &distinct.writes_.back();
    const bool is_equal = last != nullptr && write.is_strong && last->is_strong && last->first == write.first &&
                          last->end == write.end && last->is_fenced == write.is_fenced;
    equal = is_equal ? equal : 0;
    if (is_equal && (equal == 2 || last->block == write.block)) continue;
    ++equal;
    distinct.writes_.push_back(write);
  }
  distinct.finish();
  return distinct.visit_overlaps(distinct.writes_, visit) && distinct.visit_overlaps(reads_, visit);
}

std::optional<AccessLog::Conflict> AccessLog::between_blocks() const {
  std::optional<Conflict> found;
  visit_conflicts([&](const Conflict& conflict) {
    found = conflict;
    return false;
  });
  return found;
}

std::vector<AccessLog::Conflict> AccessLog::all_between_blocks() const {
  std::vector<Conflict> found;
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;
  std::size_t visited = 0;
  visit_conflicts([&](const Conflict& conflict) {
    if (known.insert(std::minmax(conflict.earlier.position, conflict.later.position)).second) found.push_back(conflict);
    return ++visited < kMostConflicts;
  });
  return found;
}

}  // namespace gradring::simulated_gpu
