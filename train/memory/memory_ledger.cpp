// SPDX-License-Identifier: Apache-2.0
#include "train/memory/memory_ledger.h"

namespace gradring::train {

MemoryLedger::MemoryLedger(kernels::Device& device) {
  for (std::size_t i = 0; i < kMemoryClasses; ++i)
    devices_[i] = std::make_unique<kernels::CountedDevice>(device, counters_[i]);
}

kernels::CountedBytes MemoryLedger::hold(MemoryClass memory_class, std::size_t bytes) {
  return {counters_[static_cast<std::size_t>(memory_class)], bytes};
}

MemoryTable MemoryLedger::peaks() const {
  MemoryTable table;
  for (const MemoryClass each : all_memory_classes())
    table[each] = counters_[static_cast<std::size_t>(each)].peak_bytes();
  return table;
}

}  // namespace gradring::train
