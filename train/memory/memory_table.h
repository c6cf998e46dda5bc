// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradring::train {

/// What the memory of a rank's device is for.
enum class MemoryClass : std::uint8_t {
  master,       ///< the weights that are trained, f32; in fp32 layers read them, too
  parameters,   ///< their rounded copy, which layers read in 16 bits
  gradients,    ///< sums of the step, and of a window's newest batch
  optimizer,    ///< its state
  activations,  ///< what forward leaves for backward, and its gradients; those of evaluation
  workspace,    ///< what plans are lent
  buckets,      ///< gradients rounded for their way between ranks; else they are summed where they lie
  batches,      ///< samples and labels; the data set, where it is resident
  step,         ///< what the device decides: loss scale, learning rates, reports
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
const std::array<MemoryClass, kMemoryClasses>& all_memory_classes();

}  // namespace gradring::train
