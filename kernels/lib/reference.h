// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/runtime/dtype.h"

/// What the check_args of the operations have in common. All of them throw InvalidArgument, with `op` and the
/// argument's name in the message.
namespace gradring::kernels::lib {

/// The types of activations: f32, f16, bf16.
constexpr bool is_floating(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

/// The types that tensor cores multiply here, with sums in f32: f16, bf16.
constexpr bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

void check_floating(std::string_view op, std::string_view argument, DType dtype);
void check_at_least(std::string_view op, std::int64_t least,
                    std::initializer_list<std::pair<std::string_view, std::int64_t>> arguments);
/// Not null.
void check_pointer(std::string_view op, std::string_view argument, const void* pointer);
void check_pointers(std::string_view op, std::initializer_list<std::pair<std::string_view, const void*>> arguments);

/// An array of so many elements: not null unless it is empty.
void check_array(std::string_view op, std::string_view argument, const void* data, std::int64_t elements);

constexpr std::size_t bytes_of(std::int64_t elements, DType dtype) {
  return static_cast<std::size_t>(elements) * size_of(dtype);
}

/// Throws unless value is in [0, most]. For what a variant cannot do, though the contract allows it.
void check_limit(std::string_view op, std::string_view argument, std::int64_t value, std::int64_t most);

/// `value` as a narrower type, for a kernel that counts in that.
template <class Narrow>
Narrow narrow(std::string_view op, std::string_view argument, std::int64_t value) {
  check_limit(op, argument, value, static_cast<std::int64_t>(std::numeric_limits<Narrow>::max()));
  return static_cast<Narrow>(value);
}

/// The 16-bit copy of the weights that an optimizer writes: null, or f16 or bf16, not overlapping the weights.
void check_weight_copy(std::string_view op, DType copy_dtype, const void* copy, const float* weights,
                       std::size_t elements);

/// Two memory ranges that must not share a byte.
void check_apart(std::string_view op, const void* x, std::size_t x_bytes, const void* y, std::size_t y_bytes);
/// Two ranges of one size that are either the same or share no byte.
void check_same_or_apart(std::string_view op, const void* x, const void* y, std::size_t bytes);

/// Arrays of any type as doubles on the host: what the references compute with.

/// Exact for every type but i64 beyond 2^53.
std::vector<double> read_values(DType dtype, const void* from, std::size_t elements);

/// Rounds to the nearest value of a floating type (by way of f32); truncates to an integer type.
void write_values(DType dtype, void* to, std::span<const double> values);

}  // namespace gradring::kernels::lib
