// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "kernels/runtime/counted_device.h"
#include "nn/program/program.h"
#include "train/memory/memory_table.h"

namespace gradring::train {

/// Counts what a rank allocates on its device, by what it is for: each part of a replica allocates from the device of its class.
/// Not counted is what libraries keep to themselves (a CUDA context, NCCL's buffers, oneDNN's packed weights) and pinned memory.
///
/// Threads   any.
class MemoryLedger {
 public:
  /// `device` must outlive the ledger, and the ledger what is allocated.
  explicit MemoryLedger(kernels::Device& device);

  kernels::Device& on(MemoryClass memory_class) { return *devices_[static_cast<std::size_t>(memory_class)]; }
  /// What a program allocates from.
  nn::ProgramDevices for_program() { return {on(MemoryClass::activations), on(MemoryClass::workspace)}; }
  /// Memory of that class which no Device allocated: count it as long as it lives.
  [[nodiscard]] kernels::CountedBytes hold(MemoryClass memory_class, std::size_t bytes);

  /// The most of each class at any time.
  MemoryTable peaks() const;

 private:
  std::array<kernels::MemoryCounter, kMemoryClasses> counters_;
  std::array<std::unique_ptr<kernels::CountedDevice>, kMemoryClasses> devices_;
};

}  // namespace gradring::train
