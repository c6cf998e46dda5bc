// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "kernels/simulated_gpu/machine/lanes.h"
#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::simulated_gpu {

class Warp;
struct Operation;
struct LaunchState;

/// Where a register is in a warp's frame, in bytes: a row of 32 values, or for a predicate one Mask.
using Slot = std::uint32_t;

/// Executes an instruction for the lanes of `active`, which are not none. Warp::position() is that of the next
/// instruction.
using Handler = void (*)(const Operation& operation, Warp& warp, Mask active);

/// An instruction, ready for execution. Registers, immediates and special registers are all rows of the frame.
struct Operation {
  Handler execute = nullptr;
  Slot guard = 0;       ///< a predicate; without a guard, one of all lanes
  Mask guard_flip = 0;  ///< all lanes for @!%p
  Slot d = 0, a = 0, b = 0, c = 0;
  std::uint64_t immediate = 0;  ///< a displacement in bytes, a target, a count
  const Slot* slots = nullptr;  ///< further rows: the elements of vectors, in order
  std::uint32_t slot_count = 0;
  const void* details = nullptr;  ///< what else the handler needs, kept by the program
};

/// A row that is the same for all launches.
struct ConstantRow {
  Slot slot = 0;
  unsigned width = 0;  ///< bytes of a lane
  std::uint64_t bits = 0;
};

/// A row that depends on the launch, the block or the thread: a special register, or the address of a parameter or
/// variable.
struct SpecialRow {
  using Value = std::uint64_t (*)(const Warp& warp, unsigned lane, std::uint64_t argument);
  Slot slot = 0;
  unsigned width = 0;
  bool differs_by_block = false;  ///< true: equal for all threads of a block; false: equal for all blocks of a launch
  Value value = nullptr;
  std::uint64_t argument = 0;
};

/// The rows that belong to a device function.
struct FunctionRows {
  struct Row {
    Slot slot = 0;
    unsigned width = 0;  ///< bytes of a lane; 0: a predicate
  };
  /// A row of addresses of a local variable, which differ by activation.
  struct LocalAddress {
    Row row;
    std::uint64_t offset = 0;  ///< in the activation's local memory
  };
  std::vector<Row> registers;
  std::vector<LocalAddress> local;
};

/// How a memory access takes part in the order of blocks: by its words in PTX.
struct MemoryOrder {
  bool is_strong = false;  ///< volatile, relaxed, acquire, release or atomic, with a scope of more than the block
  bool is_acquire = false;
  bool is_release = false;
  bool is_swap = false;       ///< atom.cas
  bool returns_none = false;  ///< red
  bool is_plain = true;       ///< not strong with the scope of the block either
  bool orders_block = false;  ///< acquire or release of any scope

  bool operator==(const MemoryOrder&) const = default;
};

/// Which parameters of a kernel point to allocations that its earlier launches wrote.
///
/// Threads   any.
class WrittenParameters {
 public:
  /// `offset`: bytes, in the parameters.
  void add(std::size_t offset) {
    const std::lock_guard lock(mutex_);
    offsets_.insert(offset);
  }
  std::vector<std::size_t> offsets() const {
    const std::lock_guard lock(mutex_);
    return {offsets_.begin(), offsets_.end()};
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::size_t> offsets_;
};

/// A translated kernel. `operations` has one more than the kernel's code: it ends the threads that come there.
struct Program {
  const ptx::Module* module = nullptr;
  const ptx::Kernel* kernel = nullptr;
  std::vector<Operation> operations;
  Slot always = 0;  ///< the guard of operations without one
  std::size_t frame_bytes = 0;
  std::vector<ConstantRow> constants;
  std::vector<SpecialRow> specials;
  std::vector<FunctionRows> functions;  ///< in the order of Kernel::functions
  std::size_t local_bytes = 0;          ///< of a thread: of the kernel itself, then the stack of functions
  std::size_t stack_begin = 0, stack_bytes = 0;
  static constexpr std::size_t kReservedSharedBytes = 1024;
  bool uses_reserved_shared = false;  ///< it has that much shared memory of its own, behind dynamic shared memory
  std::size_t smallest_access = 16;   ///< bytes, of the accesses that may reach shared memory

  std::map<std::size_t, MemoryOrder> orders;  ///< by position, of accesses; those that are missing: MemoryOrder{}
  std::set<std::size_t> read_only_loads;      ///< positions of ld.global.nc

  std::set<Slot> warpgroup_rows;  ///< of wgmma: accumulators, and A
  std::vector<Handler> handlers;  ///< of the operations: execute is another one where such rows are accessed

  std::deque<std::vector<Slot>> slot_lists;
  std::vector<std::shared_ptr<const void>> details;

  std::shared_ptr<WrittenParameters> written_parameters = std::make_shared<WrittenParameters>();

  /// The state of the launch before, for the next one to reuse (launch_state.h); null before the first launch, and while
  /// a launch uses it.
  std::atomic<std::shared_ptr<LaunchState>> reusable_state;

  std::size_t position_of(const Operation& operation) const {
    return static_cast<std::size_t>(&operation - operations.data());
  }
};

}  // namespace gradring::simulated_gpu
