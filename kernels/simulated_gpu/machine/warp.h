// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/simulated_gpu/machine/asynchronous_copies.h"
#include "kernels/simulated_gpu/machine/bulk_stores.h"
#include "kernels/simulated_gpu/machine/call_stack.h"
#include "kernels/simulated_gpu/machine/findings.h"
#include "kernels/simulated_gpu/machine/lanes.h"
#include "kernels/simulated_gpu/machine/launch.h"
#include "kernels/simulated_gpu/machine/program.h"

namespace gradring::simulated_gpu {

class Block;

/// A part of a warp whose threads are at one position, and will execute the next instruction together.
struct Fragment {
  enum class State : std::uint8_t {
    ready,
    at_collective,  ///< waits for other lanes of the warp; `position` is that of the instruction
    at_barrier,     ///< `position` is that of the barrier instruction
    polling,        ///< found an mbarrier incomplete, and will look again
  };
  std::size_t position = 0;
  Mask lanes = 0;
  State state = State::ready;
  Mask waited = 0;   ///< at_collective: the lanes that have waited already; with others, it is tried again
  Mask members = 0;  ///< at_collective: who has to come; at_barrier: who was past the barrier when the others came
  bool has_given_way = false;    ///< ready, but others of the warp go first
  std::uint32_t turns = 0;       ///< that it had while others had given way
  std::size_t waits_at = kNone;  ///< where it waited when it gave way last

  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  /// The instruction at which a report says that it waits.
  std::size_t waiting_position() const {
    if ((state == State::ready || state == State::polling) && waits_at != kNone) return waits_at;
    return state == State::polling ? position - 1 : position;
  }
};

/// Recognises a thread that waits for another one: the same instruction returns from the same address what it returned
/// before, again and again.
class Polls {
 public:
  void clear() { *this = {}; }
  /// `is_new`: it returned something else than the last time. Returns whether the thread has waited long enough to let
  /// others go first.
  bool add(const Operation& operation, std::uint64_t address, bool is_new) {
    latest_ = is_new ? nullptr : &operation;
    for (const Poll& poll : recent_)
      if (poll.operation == &operation && poll.address == address) {
        count_ = is_new ? 0 : count_ + 1;
        return count_ % kOfATurn == kOfATurn - 1;
      }
    recent_[next_++ % recent_.size()] = {&operation, address};
    count_ = 0;
    return false;
  }
  /// The last one, if it saw nothing new; else null.
  const Operation* latest() const { return latest_; }

 private:
  static constexpr unsigned kOfATurn = 8;
  struct Poll {
    const Operation* operation = nullptr;
    std::uint64_t address = 0;
  };
  std::array<Poll, 4> recent_{};  ///< a loop may look at several addresses
  const Operation* latest_ = nullptr;
  unsigned next_ = 0;
  unsigned count_ = 0;
};

/// 32 threads, or the last ones of a block. One fragment runs: the one with the smallest position among those that
/// can, so that those that left a loop wait behind it, and fragments that come to one position go on as one. A fragment
/// that waits for what other threads do gives way: another one runs until it has changed memory by an access that
/// synchronises, or for a short turn.
class Warp {
 public:
  enum class Stop : std::uint8_t {
    quantum_over,
    at_barrier,
    polling,   ///< of an mbarrier
    gave_way,  ///< a fragment waits for what others write, or sleeps; another one can run
    waiting,   ///< the same, and each fragment waits
    ended
  };

  Warp(Block& block, unsigned index);

  /// Fills the rows that depend on the launch, and not on the block.
  void begin_launch();
  /// All threads at the begin of the kernel.
  void begin_block();
  /// Executes up to `quantum` instructions.
  Stop run(std::uint64_t quantum);
  /// The same for a short turn of a warp that has executed very many instructions: if it is in a loop that changes
  /// neither registers nor memory, its threads wait for what others write, by whatever instructions.
  Stop run_in_loop();
  /// Whether it is time for that.
  bool may_be_in_loop() const { return is_in_loop_ || unprobed_ >= kUntilProbe; }
  /// How many it executed when it ran last.
  std::uint64_t executed() const { return executed_; }
  /// After Stop::at_barrier or Stop::polling: all fragments can go on.
  void resume();

  template <class T>
  T* row(Slot slot) {
    return std::assume_aligned<64>(reinterpret_cast<T*>(frame_ + slot));
  }
  Mask& predicate(Slot slot) { return *reinterpret_cast<Mask*>(frame_ + slot); }
  /// Sets the predicate of some lanes to their bits of `value`.
  void set_predicate(Slot slot, Mask lanes, Mask value) {
    predicate(slot) = (predicate(slot) & ~lanes) | (value & lanes);
  }

  Block& block() { return block_; }
  const Block& block() const { return block_; }
  unsigned index() const { return index_; }
  /// The index of a lane's thread in the block.
  unsigned thread_index(unsigned lane) const { return index_ * kWarpSize + lane; }
  /// %tid
  Extent thread(unsigned lane) const;

  /// Threads that have not ended.
  Mask living() const { return living_; }
  /// Threads of the fragment that runs.
  Mask running() const { return lanes_; }
  const std::vector<Fragment>& waiting() const { return others_; }

  // For handlers: what happens to the fragment that runs. `active` is a part of it.
  void jump(Mask active, std::size_t target) {
    const Mask rest = lanes_ & ~active;
    if (rest != 0) {
      others_.push_back({position_, rest, Fragment::State::ready});
      limit_ = 0;
    }
    lanes_ = active;
    position_ = target;
  }
  /// The same for a part that is not compared with the rest: several of them may go to targets of their own.
  void go_to(Mask lanes, std::size_t target) { leave({target, lanes, Fragment::State::ready}); }
  void end(Mask active) {
    living_ &= ~active;
    lanes_ &= ~active;
    if (lanes_ == 0) limit_ = 0;
    if (living_ != 0) [[unlikely]]
      note_end(active);
  }
  /// `passed`: lanes that are behind the barrier without having executed it.
  void wait_at_barrier(Mask active, Mask passed) {
    leave({.position = position_ - 1, .lanes = active, .state = Fragment::State::at_barrier, .members = passed});
  }
  /// For an instruction that lanes of `members` execute together: true if all of them, but those that have ended, are
  /// here. If not, they wait for the others, and execute the instruction again with them.
  bool are_together(Mask active, Mask members) {
    if ((members & living_ & ~active) == 0) return true;
    wait_for_lanes(active, active, members);
    return false;
  }
  /// A part of the lanes that execute an instruction waits for others, and will execute it again.
  /// `members`: for whom they wait, with themselves.
  void wait_for_lanes(Mask waiting, Mask active, Mask members);
  /// Lanes that wait so have executed it after all.
  void end_waiting(Mask lanes);
  void poll() { leave({position_, lanes_, Fragment::State::polling}); }
  /// The same, and the instruction, which `active` execute, will be executed again.
  void poll_again(Mask active);
  /// For an instruction that returns what other threads write, and may be a look at whether they have: polls that see
  /// nothing new give way.
  void note_poll(const Operation& operation, std::uint64_t address, bool is_new) {
    if (polls_.add(operation, address, is_new)) [[unlikely]]
      give_way();
  }
  /// The threads that run wait for others, which go first: other fragments of the warp, other warps, other blocks.
  void give_way() {
    gives_way_ = true;
    limit_ = 0;
  }
  /// By an access that synchronises memory has changed: threads that have given way may go on.
  void end_fair_turn() {
    if (is_fair_) [[unlikely]]
      forget_who_gave_way();
  }

  /// The bytes of a thread's local memory.
  std::byte* local_memory(unsigned lane) { return local_.data() + lane * local_bytes_; }
  /// Of each of these bytes, whether the thread wrote it: 0 or 1.
  std::uint8_t* local_written(unsigned lane) { return local_written_.data() + lane * local_bytes_; }
  std::size_t local_bytes() const { return local_bytes_; }

  ThreadCopies& copies() { return copies_; }
  BulkStores& bulk_stores() { return bulk_stores_; }
  CallStack& calls() { return calls_; }
  const CallStack& calls() const { return calls_; }

  /// Throws the Fault that names this operation and a lane's thread.
  [[noreturn]] void fail(const Operation& operation, unsigned lane, const std::string& what,
                         FindingKind kind = FindingKind::fault) const;
  /// The same for the next instruction of the fragment that runs.
  [[noreturn]] void fail_here(const std::string& what, FindingKind kind = FindingKind::fault) const {
    if (lanes_ == 0 && !others_.empty())
      fail_at(others_.front().waiting_position(), lowest_lane(others_.front().lanes), what, kind);
    fail_at(position_, lowest_lane(lanes_), what, kind);
  }
  /// The same for the instruction at a position.
  [[noreturn]] void fail_at(std::size_t position, unsigned lane, const std::string& what,
                            FindingKind kind = FindingKind::fault) const;

 private:
  static constexpr std::uint64_t kUntilProbe = std::uint64_t{1} << 20;
  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

  /// A part of the fragment that runs waits from now on.
  void leave(const Fragment& fragment) {
    others_.push_back(fragment);
    lanes_ &= ~fragment.lanes;
    limit_ = 0;
  }
  void note_end(Mask ended);
  Stop execute(std::uint64_t quantum);
  void fill_special(const SpecialRow& row);
  bool regroup();
  bool choose();
  bool choose_fairly();
  std::vector<Fragment>::iterator next_that_has_not_given_way();
  void start(std::vector<Fragment>::iterator chosen);
  void leave_running();
  void forget_who_gave_way();
  void share_with_fragments();
  bool leave_for_others();
  bool is_at_one_barrier() const;
  Stop why_stopped();

  Block& block_;
  const Program& program_;
  unsigned index_;
  std::unique_ptr<std::byte[]> memory_;
  std::byte* frame_;
  std::size_t local_bytes_;
  std::vector<std::byte> local_;
  std::vector<std::uint8_t> local_written_;

  std::size_t position_ = 0;  ///< of the next instruction of the fragment that runs
  Mask lanes_ = 0;
  Mask living_ = 0;
  std::size_t limit_ = kNoLimit;  ///< from this position on, fragments are compared before the next instruction
  std::vector<Fragment> others_;
  Polls polls_;
  bool gives_way_ = false;      ///< the fragment that runs
  bool is_fair_ = false;        ///< a fragment has given way, and another one has its turn
  std::uint32_t turns_ = 0;     ///< of the fragment that runs: Fragment::turns
  std::uint64_t executed_ = 0;  ///< by the last run
  std::uint64_t unshared_ = 0;  ///< instructions since fragments were compared for fairness
  std::uint64_t unprobed_ = 0;  ///< since it was looked for a loop that changes nothing
  bool is_in_loop_ = false;     ///< one was found
  ThreadCopies copies_;
  BulkStores bulk_stores_;
  CallStack calls_;
};

}  // namespace gradring::simulated_gpu
