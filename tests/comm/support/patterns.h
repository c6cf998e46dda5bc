// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/runtime/dtype.h"
#include "kernels/runtime/philox.h"

namespace gradring::tests {

/// Small whole numbers, different at every rank and element: their sums over up to 8 ranks are exact in every dtype and
/// order, so that tests can compare with ==.
inline int whole_number(int rank, std::size_t element) {
  return static_cast<int>((element * 7 + static_cast<std::size_t>(rank) * 13) % 31) - 15;
}

inline int sum_of_whole_numbers(int world, std::size_t element) {
  int sum = 0;
  for (int rank = 0; rank < world; ++rank) sum += whole_number(rank, element);
  return sum;
}

/// A float with many significant bits, so that a sum's bits depend on its order.
inline float rough_number(std::uint64_t seed, int rank, std::size_t element) {
  const std::uint32_t word = kernels::philox(seed, element, static_cast<std::uint64_t>(rank))[0];
  return (kernels::uniform_from(word) - 0.5f) * static_cast<float>(1 << (word & 7));
}

/// Writes `value` as element `index` of an array of `dtype`, as near as the type allows.
inline void store(std::byte* array, kernels::DType dtype, std::size_t index, float value) {
  using kernels::DType;
  const auto put = [&](auto element) { std::memcpy(array + index * sizeof element, &element, sizeof element); };
  switch (dtype) {
    case DType::f32: return put(value);
    case DType::f16: return put(kernels::to_half(value));
    case DType::bf16: return put(kernels::to_bfloat16(value));
    case DType::i32: return put(static_cast<std::int32_t>(value));
    case DType::i64: return put(static_cast<std::int64_t>(value));
    case DType::u8: return put(static_cast<std::uint8_t>(value));
  }
}

inline double load(const std::byte* array, kernels::DType dtype, std::size_t index) {
  using kernels::DType;
  const auto take = [&](auto element) {
    std::memcpy(&element, array + index * sizeof element, sizeof element);
    return element;
  };
  switch (dtype) {
    case DType::f32: return take(0.0f);
    case DType::f16: return to_float(take(kernels::Half{}));
    case DType::bf16: return to_float(take(kernels::BFloat16{}));
    case DType::i32: return take(std::int32_t{0});
    case DType::i64: return static_cast<double>(take(std::int64_t{0}));
    case DType::u8: return take(std::uint8_t{0});
  }
  return 0;
}

}  // namespace gradring::tests
