// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace gradring::simulated_gpu {

/// Work that is known to be done, because streams, events, graphs or waits of the host say so: a vector clock over
/// lanes (streams, and branches of graphs), each of which performs its work in the order of numbers.
class KnownDone {
 public:
  bool contains(std::uint64_t lane, std::uint64_t number) const {
    if (number <= all_up_to_) return true;
    const auto found = newest_.find(lane);
    return found != newest_.end() && found->second >= number;
  }
  void add(std::uint64_t lane, std::uint64_t number) {
    if (number <= all_up_to_) return;
    std::uint64_t& newest = newest_[lane];
    if (newest < number) newest = number;
  }
  void add(const KnownDone& other) {
    add_all_up_to(other.all_up_to_);
    for (const auto& [lane, number] : other.newest_) add(lane, number);
  }
  /// All work up to a number, of every lane.
  void add_all_up_to(std::uint64_t number) {
    if (number <= all_up_to_) return;
    all_up_to_ = number;
    std::erase_if(newest_, [number](const auto& entry) { return entry.second <= number; });
  }
  std::uint64_t all_up_to() const { return all_up_to_; }

 private:
  std::uint64_t all_up_to_ = 0;
  std::map<std::uint64_t, std::uint64_t> newest_;  // by lane; later ones only
};

/// When work lets a launch behind it begin that need not wait for its end (programmatic dependent launch).
enum class Release : std::uint8_t {
  at_end,       ///< it is not a kernel
  after_wait,   ///< all blocks have executed griddepcontrol.launch_dependents or ended, each behind griddepcontrol.wait
  before_wait,  ///< the same, but some block had not waited
};

/// A piece of enqueued work, as the memory knows it that it uses.
struct OrderedWork {
  std::uint64_t number = 0;  ///< in the order of enqueue, from 1
  std::uint64_t lane = 0;
  KnownDone before;
  /// Of a launch that may begin before the work before it has ended: what is done when it begins. `before` is done
  /// after griddepcontrol.wait.
  std::optional<KnownDone> before_wait{};
  Release release = Release::at_end;  ///< once it is done

  /// What is done when this is.
  KnownDone done_with() const {
    KnownDone all = before;
    all.add(lane, number);
    return all;
  }
  /// What is done when it lets the next launch begin. Once it is done.
  KnownDone released() const {
    switch (release) {
      case Release::at_end: return done_with();
      case Release::after_wait: return before;
      case Release::before_wait: return before_wait.value_or(before);
    }
    return before;
  }
};

/// An instruction of a kernel, or a call of the host, for people and for those who search reports.
struct CodeLocation {
  std::string kernel;       ///< "gemm_run_kernel<float>"; empty: no kernel
  std::string file;         ///< empty: not known
  unsigned line = 0;        ///< 0: not known
  std::string instruction;  ///< PTX
  std::string text;  ///< "gemm_run_kernel<float>, kernels/ops/gemm/strips.cu:30: ld.global.f32 ..."; a call: its name
};

/// Who used memory, by entries from 1: a piece of work, and what in it.
///
/// Threads   any.
class WorkLog {
 public:
  /// By the position of the instruction.
  using Describe = std::function<CodeLocation(std::uint32_t position)>;

  std::uint32_t add(const OrderedWork& work, Describe describe, std::uint32_t position = 0) {
    const std::lock_guard lock(mutex_);
    entries_.push_back({work.number, work.lane, std::move(describe), position});
    return static_cast<std::uint32_t>(entries_.size());
  }
  /// Whether `work` begins after what used memory as `entry`, or is it.
  bool is_in_order(std::uint32_t entry, const OrderedWork& work) const {
    const std::lock_guard lock(mutex_);
    const Entry& used = entries_[entry - 1];
    return used.number == work.number || work.before.contains(used.lane, used.number);
  }
  CodeLocation describe(std::uint32_t entry) const {
    const std::lock_guard lock(mutex_);
    const Entry& used = entries_[entry - 1];
    return used.describe(used.position);
  }

 private:
  struct Entry {
    std::uint64_t number = 0;
    std::uint64_t lane = 0;
    Describe describe;
    std::uint32_t position = 0;
  };

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;
};

/// Compares users of memory with one piece of work. The last answers are kept, as neighbours mostly have the same user.
class OrderCheck {
 public:
  OrderCheck(const WorkLog& log, const OrderedWork& work) : log_(log), work_(work) {}

  /// Whether the work is that of `entry`, or begins after it; true for 0, nobody.
  bool is_in_order(std::uint32_t entry) {
    std::uint32_t& known = in_order_[entry % in_order_.size()];
    if (entry == 0 || known == entry) return true;
    if (!log_.is_in_order(entry, work_)) return false;
    known = entry;
    return true;
  }

 private:
  const WorkLog& log_;
  const OrderedWork& work_;
  std::array<std::uint32_t, 64> in_order_{};
};

struct FreeArray {
  void operator()(void* data) const { std::free(data); }
};
template <class T>
using ZeroedArray = std::unique_ptr<T[], FreeArray>;

/// Integers of 0, which take no memory before they are used: what is noted of each byte of a GPU's memory. Of a large
/// array, the system is asked for pages of 2 MB, as each page costs an interrupt when it is used first.
///
/// Errors    std::bad_alloc
template <class T>
ZeroedArray<T> zeroed_array(std::size_t count) {
  constexpr std::size_t kLargePage = std::size_t{2} << 20;
  ZeroedArray<T> made(static_cast<T*>(std::calloc(count, sizeof(T))));
  if (made == nullptr && count != 0) throw std::bad_alloc();
  const auto begin = (reinterpret_cast<std::uintptr_t>(made.get()) + kLargePage - 1) / kLargePage * kLargePage;
  const auto end = (reinterpret_cast<std::uintptr_t>(made.get()) + count * sizeof(T)) / kLargePage * kLargePage;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  return made;
}

/// Which work used the words of a block of global memory last, and thus races between streams: two pieces of work use a
/// word, one of them writes, and nothing puts them in an order. They are found in whichever order the work was
/// performed.
///
/// A word has 4 bytes; work that uses different bytes of one is taken to use the same. Of several readers that have no
/// order among themselves one is remembered.
class BlockUses {
 public:
  static constexpr std::size_t kWordBytes = 4;

  explicit BlockUses(std::size_t bytes);

  /// Two uses of a word without an order.
  struct Race {
    std::size_t offset = 0;  ///< bytes
    bool is_write = false;   ///< the use that is noted
    bool was_write = false;
    std::uint32_t other = 0;  ///< the entry of the use before
  };

  /// Notes a use by the work of `check`, which has `entry` in the log.
  std::optional<Race> note(std::size_t offset, std::size_t bytes, bool is_write, std::uint32_t entry,
                           OrderCheck& check);
  /// The newest entry of work that wrote there; 0: none.
  std::uint32_t newest_writer(std::size_t offset, std::size_t bytes) const;

 private:
  std::size_t end_of_run(std::size_t begin, std::size_t end) const;

  ZeroedArray<std::uint32_t> reader_, writer_;  ///< an entry for each word, 0: none
};

/// The work that this thread performs now, as the scheduler sets it; null: nobody knows in which order it is.
inline thread_local OrderedWork* current_work = nullptr;

}  // namespace gradring::simulated_gpu
