// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/bench/kernel_case.h"
#include "kernels/runtime/stream.h"

namespace gradring::kernels::bench {

/// The values before a call.
enum class Reset : std::uint8_t { all, all_but_workspaces };

/// Restores the first values of a case's arrays. `moved`: those of random inputs by so many elements, where they may.
void reset(const KernelCase& c, Stream& stream, Reset what = Reset::all, std::size_t moved = 0);

/// The elements of each output.
using OutputValues = std::vector<std::vector<double>>;

/// What the reference makes of the first values, or of the moved ones.
OutputValues reference_values(const KernelCase& c, Stream& stream, std::size_t moved = 0);
/// What the last call on the device left.
OutputValues device_values(const KernelCase& c, Stream& stream);

/// The first element of an output that is wrong.
struct WrongElement {
  enum class Why : std::uint8_t {
    value,       ///< it differs from the reference by more than the contract allows
    repetition,  ///< its bits differ from those of the same call before: `expected` is the value of that
    behind,      ///< it is behind the output, and was written: `expected` is the byte that was there
    timed,       ///< it was right when the candidate was checked, but not after the timed calls
  };
  std::string output;  ///< its name
  std::size_t index = 0;
  double value = 0;
  double expected = 0;
  std::size_t wrong_elements = 0;  ///< of this output
  std::size_t elements = 0;        ///< of this output
  const void* data = nullptr;      ///< the device's memory
  std::size_t bytes = 0;
  std::string writer{};  ///< what a probe found out
  Why why = Why::value;
  Trial trial = Trial::none;
  std::string shape{};  ///< of the trial
};

/// What the device's outputs are in comparison with the expected ones.
struct Comparison {
  double largest_error = 0;  ///< relative to what the contract allows
  std::optional<WrongElement> first_wrong{};
};

/// Who computed the outputs: libraries write some of them only.
enum class Author : std::uint8_t { us, peer };

Comparison compare(const KernelCase& c, Author author, const OutputValues& expected, Stream& stream);

}  // namespace gradring::kernels::bench
