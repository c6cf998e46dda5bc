// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/lib/variant.h"

namespace gradring::kernels::exact_sum {

/// Sums whose bits do not depend on the order: numbers become whole multiples of a unit, and whole numbers add up
/// exactly. This half adds an array of floats to one of units:
///   units[i] += the whole number nearest to x[i] / (unit * scale)
/// An x that is not finite, or that would be more than `most` units, is refused: it adds nothing, and *refused += 1.
///
/// Aliasing  nothing overlaps; all is device memory.
/// Order     enqueued on the stream; returns at once.
/// Errors    InvalidArgument if a pointer but `scale` is null (x and units may be for zero elements), unit is not above
///           0, or most below 1.
/// Numerics  exact but for one rounding of each x, half a unit at most, ties to even; for a `unit * scale` that is a
///           power of two. Who gives n numbers an element chooses most <= 2^62 / n: then no sum, in any order,
///           overflows.
/// Cost      reads 12 and writes 8 bytes per element.
/// Example   tests/kernels/ops/exact_sum_test.cpp
struct AddArgs {
  std::size_t elements = 0;
  const float* x = nullptr;
  const float* scale = nullptr;  ///< by which x is larger than what is meant (a loss scale), above 0; null: 1
  std::int64_t* units = nullptr;
  std::int64_t* refused = nullptr;
  double unit = 0;
  std::int64_t most = 0;
};

/// The other half: x[i] = units[i] * unit * scale, rounded once to f32, or NaN, every one, if *refused is not 0.
///
/// Aliasing, Order, Errors    as above.
/// Cost      reads 8 and writes 4 bytes per element.
struct ReadArgs {
  std::size_t elements = 0;
  const std::int64_t* units = nullptr;
  const std::int64_t* refused = nullptr;
  const float* scale = nullptr;
  float* x = nullptr;
  double unit = 0;
};

void check_args(const AddArgs& args);
void check_args(const ReadArgs& args);
void reference_add(const AddArgs& args);
void reference_read(const ReadArgs& args);

struct Variant {
  std::string_view name;
  void (*add)(Stream&, const AddArgs&);
  void (*read)(Stream&, const ReadArgs&);
  bool (*supports)(const Device&, DType);
};

}  // namespace gradring::kernels::exact_sum
