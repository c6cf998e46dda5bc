// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/access_log.h"

#include <algorithm>
#include <set>
#include <utility>

namespace gradring::simulated_gpu {
namespace {

/// Looked at for all races of a launch; those behind them are mostly of the same instructions.
constexpr std::size_t kMostConflicts = std::size_t{1} << 20;
/// Strong writes of the same bytes, by blocks that publish, with which other accesses are compared.
constexpr std::size_t kMostEqualWrites = 64;

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

void ByteSet::remove(const ByteSet& other) {
  if (pages_.empty()) return;
  for (const Page& removed : other.pages_) {
    const std::uint32_t slot = slot_of(removed.number);
    if (slot == 0) continue;
    Page& own = pages_[slot - 1];
    for (std::size_t word = 0; word < own.bits.size(); ++word) own.bits[word] &= ~removed.bits[word];
  }
}

std::uint64_t ByteSet::size() const {
  std::uint64_t count = 0;
  for (const Page& page : pages_)
    for (const std::uint64_t word : page.bits) count += static_cast<unsigned>(std::popcount(word));
  return count;
}

/// By pairs of an address and an index, which are a third of an access's bytes.
void AccessLog::sort_writes() {
  if (std::ranges::is_sorted(writes_, {}, &Access::first)) return;
  std::vector<std::pair<std::uint64_t, std::size_t>> order(writes_.size());
  for (std::size_t i = 0; i < writes_.size(); ++i) order[i] = {writes_[i].first, i};
  std::ranges::sort(order);
  std::vector<Access> sorted;
  sorted.reserve(writes_.size());
  for (const auto& [first, index] : order) sorted.push_back(writes_[index]);
  writes_ = std::move(sorted);
}

void AccessLog::finish() {
  sort_writes();
  furthest_.resize(writes_.size());
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < writes_.size(); ++i) {
    writes_overlap_ |= writes_[i].first < end;
    furthest_[i] = end = std::max(end, writes_[i].end);
  }
}

void AccessLog::append(AccessLog other) {
  other.has_unwaited_ |= has_unwaited_;
  if (size() == 0 && segments_.size() == 1) {
    *this = std::move(other);
    return;
  }
  has_unwaited_ = other.has_unwaited_;
  early_.insert(early_.end(), other.early_.begin(), other.early_.end());
  const auto shift = static_cast<std::uint32_t>(segments_.size() - 1);
  segments_.insert(segments_.end(), other.segments_.begin() + 1, other.segments_.end());
  const auto copy = [&](const std::vector<Access>& from, std::vector<Access>& to) {
    const std::size_t begin = to.size();
    to.insert(to.end(), from.begin(), from.end());
    if (shift == 0) return;
    for (std::size_t i = begin; i < to.size(); ++i)
      if (to[i].segment != 0) to[i].segment += shift;
  };
  copy(other.reads_, reads_);
  copy(other.writes_, writes_);
}

/// Whether the block of a plain read updates the same bytes by atom.cas: it read what it expects, as the loop of the
/// CUDA C++ Programming Guide for atomicAdd(double) does. If another block changed it, atom.cas fails.
bool AccessLog::swaps_later(const Access& read) const {
  auto i = static_cast<std::size_t>(std::ranges::lower_bound(writes_, read.end, {}, &Access::first) - writes_.begin());
  for (; i > 0 && furthest_[i - 1] > read.first; --i) {
    const Access& write = writes_[i - 1];
    if (write.is_swap && write.block == read.block && write.first <= read.first && read.end <= write.end) return true;
  }
  return false;
}

/// Calls visit(conflict) for writes and `others` that overlap and are not ordered, until it returns false; whether it
/// never did. `all`: the log of which this is a part.
template <class Visit>
bool AccessLog::visit_overlaps(const std::vector<Access>& others, const AccessLog& all, const Visit& visit) const {
  for (const Access& other : others) {
    if (other.block == kAllBlocks) continue;
    std::optional<bool> swaps;  // swaps_later(other), which looks at many writes
    const auto is_conflict = [&](const Access& write) {
      if (other.is_read_only) return true;
      if (write.block == other.block || (write.is_strong && other.is_strong) || all.is_ordered(write, other))
        return false;
      if (write.kind != Kind::atomic || other.kind != Kind::read) return true;
      if (!swaps) swaps = all.swaps_later(other);
      return !*swaps;
    };
    auto i =
        static_cast<std::size_t>(std::ranges::lower_bound(writes_, other.end, {}, &Access::first) - writes_.begin());
    for (; i > 0 && furthest_[i - 1] > other.first; --i) {
      const Access& write = writes_[i - 1];
      if (write.end > other.first && is_conflict(write) &&
          !visit(Conflict{write, other, std::max(write.first, other.first), std::min(write.end, other.end),
                          all.is_same_value(write, other)}))
        return false;
    }
  }
  return true;
}

/// The same for all of the log.
template <class Visit>
bool AccessLog::visit_conflicts(const Visit& visit) const {
  if (!writes_overlap_) return visit_overlaps(reads_, *this, visit);
  // Of strong writes of the same bytes, those of two blocks that publish nothing say as much as all, and of the others
  // some do: with thousands of blocks, pairs would be too many.
  AccessLog distinct;
  std::size_t equal = 0;  // strong writes of the bytes of the last one that are kept
  for (const Access& write : writes_) {
    const Access* const last = distinct.writes_.empty() ? nullptr : &distinct.writes_.back();
    const bool is_equal = last != nullptr && write.is_strong && last->is_strong && last->first == write.first &&
                          last->end == write.end && (last->segment == 0) == (write.segment == 0);
    equal = is_equal ? equal : 0;
    const std::size_t most = write.segment == 0 ? 2 : kMostEqualWrites;
    if (is_equal && (equal >= most || last->block == write.block)) continue;
    ++equal;
    distinct.writes_.push_back(write);
  }
  distinct.finish();
  return distinct.visit_overlaps(distinct.writes_, *this, visit) && distinct.visit_overlaps(reads_, *this, visit);
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
  std::set<std::pair<bool, std::pair<std::uint32_t, std::uint32_t>>> known;
  std::size_t visited = 0;
  visit_conflicts([&](const Conflict& conflict) {
    const auto both = std::minmax(conflict.earlier.position, conflict.later.position);
    if (known.insert({conflict.is_same_value, both}).second) found.push_back(conflict);
    return ++visited < kMostConflicts;
  });
  return found;
}

}  // namespace gradring::simulated_gpu
