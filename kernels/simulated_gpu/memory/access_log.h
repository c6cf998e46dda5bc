// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace gradring::simulated_gpu {

/// Ranges of addresses. What follows the last one, or overlaps it, is added to that.
class RangeList {
 public:
  struct Range {
    std::uint64_t first = 0, end = 0;
  };

  void add(std::uint64_t first, std::uint64_t end) {
    if (!ranges_.empty() && first <= ranges_.back().end && end >= ranges_.back().first) [[likely]] {
      ranges_.back().first = ranges_.back().first < first ? ranges_.back().first : first;
      ranges_.back().end = ranges_.back().end > end ? ranges_.back().end : end;
      return;
    }
    if (ranges_.size() >= limit_) [[unlikely]]
      merge();
    ranges_.push_back({first, end});
  }
  /// Sorted and disjoint from now on.
  void merge();
  const std::vector<Range>& ranges() const { return ranges_; }
  void clear() { ranges_.clear(); }

 private:
  std::vector<Range> ranges_;
  std::size_t limit_ = 1024;
};

/// What a launch, or another piece of work, did with global memory: finds accesses that nothing orders.
///
/// Threads   one.
class AccessLog {
 public:
  enum class Kind : std::uint8_t { read, write, atomic };
  struct Access {
    std::uint64_t first = 0, end = 0;
    std::uint64_t block = 0;     ///< of the grid
    std::uint32_t position = 0;  ///< of the instruction
    Kind kind = Kind::read;
    bool is_fenced = false;  ///< the block executed a fence for the whole GPU
  };
  struct Conflict {
    Access earlier, later;  ///< at least one of them writes
    std::uint64_t first = 0, end = 0;
  };

  void add(const Access& access) { (access.kind == Kind::read ? reads_ : writes_).push_back(access); }
  void append(const AccessLog& other);
  const std::vector<Access>& reads() const { return reads_; }
  /// Atomics, too.
  const std::vector<Access>& writes() const { return writes_; }
  bool empty() const { return reads_.empty() && writes_.empty(); }
  std::size_t size() const { return reads_.size() + writes_.size(); }
  /// Where nothing more is added: makes the questions fast.
  void finish();

  /// Two blocks of the launch access the same bytes, one of them writes them, not both atomically; blocks that
  /// executed fences for the whole GPU are taken to be ordered by them. After finish().
  std::optional<Conflict> between_blocks() const;
  /// The same for two pieces of work that nothing orders: any of their accesses. After finish() of both.
  std::optional<Conflict> with(const AccessLog& later) const;

 private:
  template <class Counts>
  std::optional<Conflict> find(const std::vector<Access>& others, Counts counts) const;

  std::vector<Access> reads_;
  std::vector<Access> writes_;           ///< atomics, too
  std::vector<std::uint64_t> furthest_;  ///< the largest end of these writes up to each
};

}  // namespace gradring::simulated_gpu
