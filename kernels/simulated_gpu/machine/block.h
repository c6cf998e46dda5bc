// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/simulated_gpu/machine/asynchronous_copies.h"
#include "kernels/simulated_gpu/machine/global_accesses.h"
#include "kernels/simulated_gpu/machine/launch.h"
#include "kernels/simulated_gpu/machine/program.h"
#include "kernels/simulated_gpu/machine/runtime_functions.h"
#include "kernels/simulated_gpu/machine/synchronized_mbarriers.h"
#include "kernels/simulated_gpu/machine/warp.h"
#include "kernels/simulated_gpu/machine/warpgroups.h"
#include "kernels/simulated_gpu/memory/global_memory.h"
#include "kernels/simulated_gpu/memory/global_words.h"
#include "kernels/simulated_gpu/memory/shared_memory.h"

namespace gradring::simulated_gpu {

/// Details of bar.sync and bar.red. Operation::a is the row of the barrier's number, b that of its number of threads
/// (0: all), c the predicate and d the destination of a reduction.
struct BarrierDetails {
  enum class Reduction : std::uint8_t { none, all, any, count };
  Reduction reduction = Reduction::none;
  Mask flip = 0;  ///< all lanes if the predicate is negated
  bool is_aligned =
      true;  ///< all threads of a warp execute the same instruction; barrier.sync without .aligned: not so

  /// To which positions threads may come that are behind it: found when it is first asked for.
  struct Behind {
    std::once_flag is_known;
    std::vector<bool> positions;
  };
  std::shared_ptr<Behind> behind = std::make_shared<Behind>();
};

class Cluster;

/// What a host thread counts of a launch.
struct Tally {
  Counters counters;
  std::vector<std::uint64_t> attributed;  ///< executions that are counted by multiprocessor, by instruction

  /// What was executed since the last time belongs to the multiprocessor of this block.
  void attribute(std::uint64_t block);
};

/// What %clock and %globaltimer of a block's threads say: it goes on when it is read, and measures nothing. A loop that
/// reads it until a time has passed ends after some hundred rounds, because each read by one instruction in a row lets
/// twice as much time pass.
class VirtualClock {
 public:
  void clear() { *this = {}; }
  std::uint64_t read(std::size_t position) {
    step_ = position == last_position_ ? std::min(2 * step_, kMostStep) : kFirstStep;
    last_position_ = position;
    return now_ += step_;
  }
  void advance(std::uint64_t time) { now_ += time; }

 private:
  static constexpr std::uint64_t kFirstStep = 32;
  static constexpr std::uint64_t kMostStep = std::uint64_t{1} << 24;

  std::uint64_t now_ = 0;
  std::uint64_t step_ = kFirstStep;
  std::size_t last_position_ = ~std::size_t{0};
};

/// Executes blocks of a launch, one after another, on one host thread: their warps in turns, in an order drawn from
/// the seed. A block that waits for another one stops, and is resumed later.
class Block {
 public:
  /// The blocks of `cluster` with this rank. `tally`: of all blocks that the host thread executes. `races`: of the
  /// launch.
  Block(const Program& program, const LaunchSpec& launch, GlobalMemory& memory, const ExecutionOptions& options,
        Tally& tally, RaceSearch& races, Cluster& cluster, unsigned rank);

  /// Prepares for another launch of the kernel, whose blocks have the same extents.
  void begin_launch();
  /// The block at this index of the grid, from its begin. The one before has ended.
  void begin(const Extent& index);

  enum class Outcome : std::uint8_t {
    ended,
    waits,  ///< each of its warps waits, one of them at least for what others write
    polls,  ///< in a cluster of several blocks: each of its warps waits at a barrier or mbarrier
    turn_over
  };
  /// Executes it until it ends, until all of its warps wait, or until they have executed about `turn` instructions.
  ///
  /// Errors    Fault.
  Outcome run(std::uint64_t turn);

  bool has_ended() const { return in_state(State::ended) == (Mask{2} << (warp_count() - 1)) - 1; }
  /// Threads that have not ended.
  std::uint64_t living() const;
  [[noreturn]] void report_deadlock() const;

  Cluster& cluster() { return cluster_; }
  const Cluster& cluster() const { return cluster_; }
  unsigned cluster_rank() const { return rank_; }
  unsigned cluster_size() const;
  /// The block of the own cluster with this rank; null without such a block.
  Block* of_rank(unsigned rank);

  /// The index in the grid.
  std::uint64_t linear_index() const { return linear_index_; }
  /// Instructions of its warps until now.
  std::uint64_t executed() const { return executed_; }
  /// Whether it has changed memory, or completed a barrier, since the last call.
  bool has_progressed() { return std::exchange(known_progress_, progress()) != progress(); }
  std::uint64_t progress() const { return progress_ + changes_; }

  const Program& program() const { return program_; }
  const LaunchSpec& launch() const { return launch_; }
  const Extent& index() const { return index_; }
  unsigned warp_count() const { return static_cast<unsigned>(warps_.size()); }
  Counters& counters() { return counters_; }
  /// Null if races are not looked for.
  GlobalAccesses* accesses() { return accesses_ ? &*accesses_ : nullptr; }
  /// Null if races between warps of a block are not looked for in global memory.
  GlobalWords* global_words() { return global_words_ && global_words_->is_on() ? &*global_words_ : nullptr; }
  void forget_words() {
    if (global_words_) global_words_->forget();
  }
  /// Null if there are none.
  const RuntimeFunctions* runtime_functions() const { return options_.functions; }
  FindingLog* findings() const { return options_.findings; }
  /// Whether the sectors that are touched are counted.
  bool counts_sectors() const { return options_.counted_multiprocessors > 0; }
  GlobalView& global() { return global_; }
  SharedMemory& shared() { return shared_; }
  const SharedMemory& shared() const { return shared_; }
  Warp& warp(unsigned index) { return *warps_[index]; }
  const Warp& warp(unsigned index) const { return *warps_[index]; }
  /// Where blocks run, if they are shared out over multiprocessors in turns: %smid, %nsmid.
  unsigned multiprocessors() const { return std::max(options_.counted_multiprocessors, 1u); }
  unsigned multiprocessor() const { return static_cast<unsigned>(linear_index_ % multiprocessors()); }
  VirtualClock& clock() { return clock_; }
  SynchronizedMbarriers& mbarriers() { return mbarriers_; }
  TensorCopies& tensor_copies() { return tensor_copies_; }
  Warpgroups& warpgroups() { return warpgroups_; }

  /// A named barrier of bar.sync and bar.red.
  struct Barrier {
    std::uint32_t warps = 0;            ///< that wait
    unsigned threads = 0;               ///< in these
    unsigned expected = 0;              ///< 0: all threads of the block
    unsigned votes = 0;                 ///< bar.red: threads whose predicate holds
    AccessClocks::Released released{};  ///< by warps that arrived, and do not wait
  };

  /// bar.arrive: of all living threads of a warp.
  void arrive_without_waiting(const Operation& operation, Warp& warp, Mask lanes);

  /// Something happened that a polling warp may wait for.
  void note_progress() {
    ++progress_;
    waiting_ = 0;
  }
  /// Memory has changed: by an atomic, or by a store if compares_stores() holds; else by any store.
  void note_change() { ++changes_; }
  /// Whether stores of the value that is in memory already are told from others: they are not, until blocks wait.
  bool compares_stores() const { return compares_stores_; }
  void compare_stores(bool compares) { compares_stores_ = compares; }

 private:
  enum class State : std::uint8_t { ready, at_barrier, polling, ended };

  Outcome run_warps(std::uint64_t turn);
  void advance(unsigned warp);
  void arrive(unsigned warp);
  Barrier& barrier_of(const Operation& operation, Warp& warp, unsigned lane);
  void release(Barrier& barrier);
  void release_if_complete(Barrier& barrier);
  void note_early_exit(const Barrier& barrier, std::uint64_t living) const;
  void wake_polling();
  Mask in_state(State state) const { return in_state_[static_cast<std::size_t>(state)]; }
  void set_state(unsigned warp, State state);
  unsigned choose(Mask warps);
  unsigned draw(unsigned below);

  const Program& program_;
  const LaunchSpec& launch_;
  const ExecutionOptions& options_;
  Extent index_;
  Tally& tally_;
  Counters& counters_;
  Cluster& cluster_;
  unsigned rank_;
  std::optional<GlobalAccesses> accesses_;
  std::optional<GlobalWords> global_words_;
  GlobalView global_;
  SharedMemory shared_;
  VirtualClock clock_;
  SynchronizedMbarriers mbarriers_;
  TensorCopies tensor_copies_{*this};
  Warpgroups warpgroups_{*this};
  std::vector<std::unique_ptr<Warp>> warps_;
  std::array<Mask, 4> in_state_{};  ///< warps, by State
  std::array<Barrier, 16> barriers_;
  bool uses_barriers_ = false;
  std::uint64_t linear_index_ = 0;
  std::uint64_t draws_ = 0;
  std::uint64_t executed_ = 0;
  unsigned last_chosen_ = 0;
  std::uint64_t progress_ = 0;
  std::uint64_t progress_at_wake_ = 0;
  unsigned idle_wakes_ = 0;
  Mask waiting_ = 0;                  ///< warps that are ready, and wait for what others write
  std::uint64_t changes_ = 0;         ///< of memory
  std::uint64_t known_progress_ = 0;  ///< to the caller of has_progressed()
  bool compares_stores_ = false;
};

}  // namespace gradring::simulated_gpu
