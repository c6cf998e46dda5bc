// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/simt/engine/cooperation.h"
#include "kernels/simt/engine/fiber.h"
#include "kernels/simt/engine/grid.h"

namespace gradring::simt::detail {

class Block;

/// The mbarriers of one block: barriers that lie in shared memory, wait for arrivals and for bytes of asynchronous
/// copies, and count phases. They are identified by address; the memory itself is not read.
///
/// Stricter than hardware: bytes must be expected before they land, and a barrier is initialised once a block.
class Mbarriers {
 public:
  static constexpr unsigned kMost = 64;

  /// None is initialised.
  void begin() { count_ = waiting_count_ = 0; }

  // `me` is the running thread.

  void init(const Fiber& me, Block& block, const void* address, unsigned arrivals);
  /// One arrival, which first lets the phase expect so many bytes.
  void arrive(const Fiber& me, Block& block, const void* address, std::int64_t expected_bytes);
  /// So many bytes have come.
  void land(const Fiber& me, Block& block, const void* address, std::int64_t bytes);
  /// Waits for the end of the phase with this parity; returns at once in the phase after it.
  void wait(Fiber& me, Block& block, const void* address, unsigned parity);

  // Of a deadlock:

  unsigned waiting() const { return waiting_count_; }
  const Fiber& one_waiting() const { return *waiting_[0].fiber; }
  /// What the barrier of one_waiting() lacks.
  void say_what_is_missing(char* text, std::size_t bytes) const;

 private:
  struct Mbarrier {
    const void* address = nullptr;
    unsigned arrivals = 0;  // of a phase
    unsigned missing_arrivals = 0;
    std::int64_t missing_bytes = 0;
    unsigned phase = 0;
    char edges[2] = {};  // for TSan; two that take turns, see Warp::barrier_edges
  };
  struct Waiting {
    Fiber* fiber;
    unsigned barrier;
  };

  Mbarrier& find(const Fiber& me, Block& block, const void* address);
  void end_phase_if_complete(Mbarrier& barrier, Block& block);

  std::array<Mbarrier, kMost> barriers_;
  std::array<Waiting, 1024> waiting_;
  unsigned count_ = 0, waiting_count_ = 0;
};

/// The block that the calling OS thread runs; null outside of kernels and in kernels that run as plain loops.
Block* current_block();
void set_current_block(Block* block);

/// "thread (3,0,0) in __syncthreads at file.cu:12". A value, not a std::string: the stacks that messages are written on
/// are abandoned, and what they own would leak.
struct Description {
  char text[240];
};
Description describe(const Fiber& fiber);

/// Runs the threads of one block, one at a time, on the OS thread that calls run. A thread is a plain call until it
/// meets a barrier or a warp operation; there its stack is parked and the next thread starts on another. So a thread
/// that never waits costs no switch, and a block needs as many stacks as threads wait at once.
///
/// Under TSan each thread has a stack and a TSan identity of its own, and the only happens-before edges between threads
/// are CUDA's: block start and end, __syncthreads, __syncwarp. A shuffle gives none.
///
/// This code and what it calls is compiled without TSan's instrumentation (kernels/simt/CMakeLists.txt): its data is
/// shared by all threads of the block, and none of that is the kernel's doing. It uses no containers for the same
/// reason.
class Block {
 public:
  static constexpr unsigned kMaxThreads = Turns::kMaxThreads;

  explicit Block(const ExecutorOptions& options);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// Calls grid.run_thread once per thread.
  ///
  /// Errors    simt::Error; the threads that still waited are abandoned, their destructors do not run.
  void run(const Grid& grid, std::size_t block_index);

  /// Ends the launch: frees what is costly to keep.
  void release_identities();

  // What the running kernel thread may call.

  /// Waits for all threads of the block; returns for how many of them `predicate` held.
  unsigned barrier(const char* what, bool predicate, Site site);

  /// Waits for the lanes of `mask`. The last one to come calls `lead(deposits, mask, block)` for all.
  using Lead = void (*)(Deposits& deposits, std::uint32_t mask, Block& block);
  void meet(std::uint32_t mask, WarpOperation operation, const char* what, void* data, Site site, Lead lead);

  /// The running thread, which is about to do `what`; for messages, should it come to that or wait there.
  Fiber& enter(const char* what, Site site);
  AsyncWork& async_work(const char* what, Site site);
  Mbarriers& mbarriers() { return mbarriers_; }
  /// Parks the running thread until wake is called for it.
  void park(Fiber& running);
  void wake(Fiber& waiting) { turns_.push_ready(&waiting); }

  /// Ends the block with a message (printf format); run throws it. Does not return.
  [[noreturn]] void fail(Site site, const char* format, ...) __attribute__((format(printf, 3, 4)));

  const Fiber& running() const { return *running_; }

 private:
  static constexpr unsigned kMaxWarps = kMaxThreads / 32;

  void reset_fibers();
  void begin(const Grid& grid, std::size_t block_index);
  static void enter_fiber();
  void assign(Fiber& fiber, unsigned linear);
  Fiber& next_fiber();
  void switch_to(Fiber& to);
  void finish_thread();
  void release_barrier();
  void check_partners(const Fiber& fiber, const Warp& warp, const Deposit& mine);
  void report_deadlock();

  ExecutorOptions options_;
  Stacks stacks_;
  Turns turns_;
  Fiber host_;  // the OS thread itself
  std::array<Fiber, kMaxThreads> fibers_;
  std::array<Fiber*, kMaxThreads> idle_;     // fibers without a thread
  std::array<Fiber*, kMaxThreads> waiting_;  // at the barrier
  std::array<Warp, kMaxWarps> warps_;
  std::array<AsyncWork, kMaxThreads> async_work_;
  bool async_work_used_ = false;
  Mbarriers mbarriers_;
  Fiber* running_ = nullptr;
  const Grid* grid_ = nullptr;
  unsigned idle_count_ = 0, waiting_count_ = 0, threads_ = 0, finished_ = 0;
  unsigned phase_ = 0, votes_ = 0, votes_of_last_phase_ = 0;
  char barrier_edges_[2] = {};  // see Warp::barrier_edges
  // Two objects, not one: with one, the end of thread 0 would be ordered before the start of thread 1.
  char started_edge_ = 0, ended_edge_ = 0;
  Site failure_site_;
  char failure_[640] = "";
};

}  // namespace gradring::simt::detail
