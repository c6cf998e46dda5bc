// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "kernels/runtime/counted_device.h"

namespace gradring::train {

/// What a rank's device memory is used for.
enum class MemoryClass : std::uint8_t {
  master,       ///< f32 weights that are trained; in fp32 layers read them, too
  parameters,   ///< the rounded copy that layers read in 16 bits
  gradients,    ///< of the newest pass, and sums of the step
  optimizer,    ///< its state
  activations,  ///< outputs that forward keeps for backward, and their gradients; those of evaluation
  workspace,    ///< scratch memory of plans
  buckets,      ///< gradients rounded for the wire; otherwise they are summed in place
  batches,      ///< samples and labels; the data set, where it is resident
  step,         ///< what the device decides on: loss scale, learning rates, reports
};

inline constexpr std::size_t kMemoryClasses = 9;

/// "master", "parameters", ...
std::string_view name_of(MemoryClass memory_class);

/// Bytes of each class.
class MemoryTable {
 public:
  std::size_t& operator[](MemoryClass memory_class) { return bytes_[static_cast<std::size_t>(memory_class)]; }
  std::size_t operator[](MemoryClass memory_class) const { return bytes_[static_cast<std::size_t>(memory_class)]; }
  std::size_t total() const;
  bool operator==(const MemoryTable&) const = default;

 private:
  std::array<std::size_t, kMemoryClasses> bytes_{};
};

/// Every class, in the order of the table.
constexpr std::array<MemoryClass, kMemoryClasses> all_memory_classes() {
  using enum MemoryClass;
  static_assert(static_cast<std::size_t>(step) + 1 == kMemoryClasses);
  return {master, parameters, gradients, optimizer, activations, workspace, buckets, batches, step};
}

/// Counts what a rank allocates on its device, by class: each part of a replica allocates through the device of its
/// class. Not counted: memory inside libraries (a CUDA context, NCCL's buffers, oneDNN's packed weights), and pinned
/// memory.
///
/// Threads   any.
class MemoryLedger {
 public:
  /// `device` must outlive the ledger, and the ledger all allocations.
  explicit MemoryLedger(kernels::Device& device);

  kernels::Device& on(MemoryClass memory_class) { return *devices_[static_cast<std::size_t>(memory_class)]; }
  /// Counts memory that no Device allocated, as long as the result lives.
  [[nodiscard]] kernels::CountedBytes hold(MemoryClass memory_class, std::size_t bytes);

  /// The peak of each class.
  MemoryTable peaks() const;

 private:
  std::array<kernels::MemoryCounter, kMemoryClasses> counters_;
  std::array<std::unique_ptr<kernels::CountedDevice>, kMemoryClasses> devices_;
};

}  // namespace gradring::train
