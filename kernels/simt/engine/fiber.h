// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/simt/engine/grid.h"
#include "kernels/simt/engine/sanitizer.h"

namespace gradring::simt::detail {

/// A parked stack: where to resume it. One header, three bodies, of which CMake picks one: context_x86_64.cpp and
/// context_aarch64.cpp (twenty instructions, no system call), context_ucontext.cpp (any POSIX system; the kernel is
/// asked for the signal mask at each switch, which costs twenty times as much).
struct Context {
  void* resume = nullptr;
};

/// Lays out `stack` so that the first switch to the result calls `entry`, which must never return.
Context make_context(char* stack, std::size_t bytes, void (*entry)());

/// Parks the running stack in `from` and resumes `to`. Returns when another switch resumes `from`.
void switch_context(Context& from, const Context& to);

/// One emulated thread while it has a stack of its own, or the OS thread that runs the block.
struct Fiber {
  Context context;
  Tracked tracked;
  std::size_t stack_index = 0;

  unsigned linear = 0;             // number of the thread in its block, x running fastest
  Extent3 thread{0, 0, 0};         // threadIdx
  const char* waits_in = nullptr;  // the operation that parked it, for messages
  Site site;                       // and its source location

  unsigned lane() const { return linear % 32; }
  unsigned warp() const { return linear / 32; }
};

/// What the lanes of a warp do together. Only lanes in the same operation may wait for each other.
enum class WarpOperation : std::uint8_t { barrier, shuffle, ballot, match, reduce, gather, matrix_multiply };

/// One lane's part in a warp operation, deposited until all lanes of the mask have come.
struct Deposit {
  std::uint32_t mask = 0;
  WarpOperation operation = WarpOperation::barrier;
  void* data = nullptr;  // on the lane's stack; the last lane to come reads and writes it for all
  Fiber* fiber = nullptr;
};
using Deposits = std::array<Deposit, 32>;

/// The lanes of one warp: which exist, which have left the kernel, which wait.
struct Warp {
  std::uint32_t existing = 0, exited = 0, waiting = 0;
  Deposits deposits;
  // For TSan: per group of lanes, known by its lowest lane, two objects that take turns. With one, a fast lane's next
  // arrival would give the slow lanes of this one a happens-before edge that the program does not have.
  char barrier_edges[32][2] = {};
  unsigned char phase[32] = {};

  void begin(unsigned lanes) {
    existing = lanes >= 32 ? ~0u : (1u << lanes) - 1;
    exited = waiting = 0;
  }
};

/// Stacks for the threads of one block: one reserved range of addresses, of which the system backs only what is
/// touched. The first stack lies highest, so that one that grows over its end grows into those that are taken into use
/// later; the block notices before they are. (Guard pages would cost two mappings a stack, of which a process has only
/// 65,530.)
class Stacks {
 public:
  /// Errors    DeviceError if the addresses are not to be had.
  Stacks(std::size_t count, std::size_t bytes_each);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  char* stack(std::size_t index) const { return memory_ + (count_ - 1 - index) * bytes_each_; }
  /// Usable bytes of a stack. They differ a little from stack to stack: tops at equal offsets would fall into the same
  /// sets of the processor's cache.
  std::size_t usable_bytes(std::size_t index) const { return bytes_each_ - index % 61 * 64; }

 private:
  std::size_t count_;
  std::size_t bytes_each_;
  char* memory_;
};

/// Who runs next in a block: threads that have not started yet, in the chosen order, and threads that a barrier has
/// made ready again. ThreadOrder::random draws between them, always the same for equal seeds.
class Turns {
 public:
  static constexpr unsigned kMaxThreads = 1024;

  void begin(ThreadOrder order, std::uint64_t seed, unsigned threads);

  bool all_started() const { return started_ == threads_; }
  bool any_ready() const { return ready_count_ != 0; }
  /// Linear index of the next thread to start.
  unsigned start_next() { return start_order_[started_++]; }
  /// True if a ready thread, not a new one, should run now.
  bool prefer_ready();

  void push_ready(Fiber* fiber);
  Fiber* pop_ready();

 private:
  unsigned draw(unsigned below);

  std::array<unsigned, kMaxThreads> start_order_;
  std::array<Fiber*, kMaxThreads> ready_;  // ring
  unsigned threads_ = 0, started_ = 0, ready_count_ = 0, ready_first_ = 0;
  bool random_ = false;
  std::uint64_t state_ = 1;  // xorshift64
};

}  // namespace gradring::simt::detail
