// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/simulated_gpu/memory/block_order.h"
#include "kernels/simulated_gpu/memory/work_order.h"

namespace gradring::simulated_gpu {

/// A set of bytes (or sectors): a bit for each one in the pages that it touches. Kernels read the same ones again and
/// again.
class ByteSet {
 public:
  struct Range {
    std::uint64_t first = 0, end = 0;
  };

  void add(std::uint64_t first, std::uint64_t end) {
    while (first < end) {
      const std::uint64_t last = std::min(end, (first / kPageBytes + 1) * kPageBytes);
      add_within(page(first / kPageBytes), first % kPageBytes, last - first);
      first = last;
    }
  }
  void add(const ByteSet& other);
  void remove(const ByteSet& other);
  std::uint64_t size() const;
  /// Calls visit(range) for the longest ranges of it, the lowest first; then it is empty.
  template <class Visit>
  void take(const Visit& visit) {
    std::ranges::sort(pages_, {}, &Page::number);
    Range open;
    for (const Page& page : pages_)
      for (std::size_t word = 0; word < page.bits.size(); ++word) {
        const std::uint64_t begin = page.number * kPageBytes + word * kWordBits;
        std::uint64_t bits = page.bits[word];
        while (bits != 0) {
          const auto skip = static_cast<unsigned>(std::countr_zero(bits));
          const auto run = static_cast<unsigned>(std::countr_one(bits >> skip));
          if (open.end != begin + skip) {
            if (open.end != 0) visit(open);
            open.first = begin + skip;
          }
          open.end = begin + skip + run;
          if (skip + run >= kWordBits) break;
          bits &= ~std::uint64_t{0} << (skip + run);
        }
      }
    if (open.end != 0) visit(open);
    pages_.clear();
    std::ranges::fill(slots_, 0);
  }

 private:
  static constexpr std::size_t kWordBits = 64;
  static constexpr std::size_t kPageBytes = 512;
  struct Page {
    std::uint64_t number = 0;
    std::array<std::uint64_t, kPageBytes / kWordBits> bits{};
  };

  Page& page(std::uint64_t number) {
    if (2 * pages_.size() >= slots_.size()) [[unlikely]]
      grow();
    std::uint32_t& slot = slot_of(number);
    if (slot == 0) [[unlikely]] {
      pages_.push_back({.number = number});
      slot = static_cast<std::uint32_t>(pages_.size());
    }
    return pages_[slot - 1];
  }
  /// That of the page, or the empty one where it belongs.
  std::uint32_t& slot_of(std::uint64_t number) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = (number * 0x9e3779b97f4a7c15 >> 32) & mask;  // Fibonacci hashing
    while (slots_[slot] != 0 && pages_[slots_[slot] - 1].number != number) slot = (slot + 1) & mask;
    return slots_[slot];
  }
  void grow();
  static void add_within(Page& page, std::size_t first, std::size_t bytes) {
    while (bytes > 0) {
      const std::size_t bit = first % kWordBits;
      const std::size_t count = std::min(bytes, kWordBits - bit);
      page.bits[first / kWordBits] |= (~std::uint64_t{0} >> (kWordBits - count)) << bit;
      first += count;
      bytes -= count;
    }
  }

  std::vector<Page> pages_;
  std::vector<std::uint32_t>
      slots_;  ///< a hash table with open addressing, a power of two: indices of pages plus 1, 0: empty
};

/// What a launch did with global memory: finds accesses of its blocks that nothing orders.
///
/// Threads   one.
class AccessLog {
 public:
  enum class Kind : std::uint8_t { read, write, atomic };
  /// Of reads that are known as one range for a launch.
  static constexpr std::uint64_t kAllBlocks = ~std::uint64_t{0};
  struct Access {
    std::uint64_t first = 0, end = 0;
    std::uint64_t block = 0;     ///< of the grid
    std::uint32_t position = 0;  ///< of the instruction
    Kind kind = Kind::read;
    bool is_strong = false;     ///< an atomic, or volatile, relaxed, acquire or release
    bool is_swap = false;       ///< atom.cas
    bool is_read_only = false;  ///< ld.global.nc
    bool is_silent = false;     ///< a write of bytes that had their values already
    std::uint32_t segment =
        0;  ///< an index of add_segment(); 0: the block published nothing before, and knows of no other
  };
  /// Accesses of a block that are published together, and what the block knew of others when it made them.
  struct Segment {
    std::uint32_t number = 0;  ///< in the block
    BlockOrder::Clock known;   ///< null: nothing
  };
  struct Conflict {
    Access earlier, later;  ///< at least one of them writes
    std::uint64_t first = 0, end = 0;
    bool is_same_value = false;  ///< both store one value
  };

  void add(const Access& access) { (access.kind == Kind::read ? reads_ : writes_).push_back(access); }
  /// The same, by a launch that may begin before the work before it has ended: before griddepcontrol.wait.
  void add_early(const Access& access) { early_.push_back(access); }
  /// A block executes griddepcontrol.launch_dependents, or ends, before griddepcontrol.wait.
  void add_unwaited() { has_unwaited_ = true; }
  std::uint32_t add_segment(Segment segment) {
    segments_.push_back(std::move(segment));
    return static_cast<std::uint32_t>(segments_.size() - 1);
  }
  void append(AccessLog other);
  const std::vector<Access>& reads() const { return reads_; }
  /// Atomics, too.
  const std::vector<Access>& writes() const { return writes_; }
  /// They are among the others, too.
  const std::vector<Access>& early() const { return early_; }
  Release release() const { return has_unwaited_ ? Release::before_wait : Release::after_wait; }
  std::size_t size() const { return reads_.size() + writes_.size(); }
  /// Blocks were executed one after another, by their index: of two stores, the later one is known. Else a store of what
  /// was in memory before the launch counts as one of the value that another block stored.
  void note_order_of_blocks() { runs_in_order_ = true; }
  /// Where nothing more is added: makes between_blocks() fast.
  void finish();

  /// Two blocks of the launch access the same bytes, one of them writes them, not both by strong accesses, and neither
  /// had published its access to the other; or ld.global.nc reads bytes that the launch writes. After finish().
  std::optional<Conflict> between_blocks() const;
  /// Returns each pair of instructions once, and once more where both store one value.
  std::vector<Conflict> all_between_blocks() const;

 private:
  void sort_writes();
  template <class Visit>
  bool visit_conflicts(const Visit& visit) const;
  template <class Visit>
  bool visit_overlaps(const std::vector<Access>& others, const AccessLog& all, const Visit& visit) const;

  bool is_ordered(const Access& a, const Access& b) const {
    const Segment& one = segments_[a.segment];
    const Segment& other = segments_[b.segment];
    return (other.known != nullptr && other.known->knows(a.block, one.number)) ||
           (one.known != nullptr && one.known->knows(b.block, other.number));
  }
  bool swaps_later(const Access& read) const;
  bool is_same_value(const Access& a, const Access& b) const {
    if (a.kind != Kind::write || b.kind != Kind::write) return false;
    if (runs_in_order_) return (a.block > b.block ? a : b).is_silent;
    return a.is_silent || b.is_silent;
  }

  std::vector<Access> reads_;
  std::vector<Segment> segments_ = {{}};
  std::vector<Access> writes_;  ///< atomics, too
  std::vector<Access> early_;
  bool has_unwaited_ = false;
  std::vector<std::uint64_t> furthest_;  ///< the largest end of these writes up to each
  bool writes_overlap_ = false;
  bool runs_in_order_ = false;
};

/// "read", "written" or "updated".
constexpr const char* verb(AccessLog::Kind kind) {
  return kind == AccessLog::Kind::read ? "read" : kind == AccessLog::Kind::write ? "written" : "updated";
}

}  // namespace gradring::simulated_gpu
