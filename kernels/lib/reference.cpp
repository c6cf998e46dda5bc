// SPDX-License-Identifier: Apache-2.0
#include "kernels/lib/reference.h"

#include <cstdint>
#include <string>

#include "kernels/base/error.h"

namespace gradring::kernels::lib {
namespace {

[[noreturn]] void refuse(std::string_view op, const std::string& what) {
  throw InvalidArgument(std::string(op) + ": " + what);
}

bool overlap(const void* x, std::size_t x_bytes, const void* y, std::size_t y_bytes) {
  const auto a = reinterpret_cast<std::uintptr_t>(x);
  const auto b = reinterpret_cast<std::uintptr_t>(y);
  return x && y && a < b + y_bytes && b < a + x_bytes;
}

}  // namespace

void check_floating(std::string_view op, std::string_view argument, DType dtype) {
  if (!is_floating(dtype))
    refuse(op, std::string(argument) + " is " + std::string(name_of(dtype)) + ", expected f32, f16 or bf16");
}

void check_at_least(std::string_view op, std::int64_t least,
                    std::initializer_list<std::pair<std::string_view, std::int64_t>> arguments) {
  for (const auto& [argument, value] : arguments)
    if (value < least)
      refuse(op,
             std::string(argument) + " is " + std::to_string(value) + ", expected at least " + std::to_string(least));
}

void check_limit(std::string_view op, std::string_view argument, std::int64_t value, std::int64_t most) {
  if (value < 0 || value > most)
    refuse(op, std::string(argument) + " is " + std::to_string(value) + ", expected 0 to " + std::to_string(most) +
                   " in this variant; use another variant, or split the work");
}

void check_pointer(std::string_view op, std::string_view argument, const void* pointer) {
  if (!pointer) refuse(op, std::string(argument) + " is a null pointer");
}

void check_pointers(std::string_view op, std::initializer_list<std::pair<std::string_view, const void*>> arguments) {
  for (const auto& [argument, pointer] : arguments) check_pointer(op, argument, pointer);
}

void check_array(std::string_view op, std::string_view argument, const void* data, std::int64_t elements) {
  if (elements) check_pointer(op, argument, data);
}

void check_weight_copy(std::string_view op, DType copy_dtype, const void* copy, const float* weights,
                       std::size_t elements) {
  if (!copy) return;
  if (copy_dtype != DType::f16 && copy_dtype != DType::bf16)
    refuse(op, "copy_dtype is " + std::string(name_of(copy_dtype)) +
                   ", expected f16 or bf16; for f32, use the weights themselves");
  check_apart(op, weights, elements * sizeof(float), copy, elements * size_of(copy_dtype));
}

void check_apart(std::string_view op, const void* x, std::size_t x_bytes, const void* y, std::size_t y_bytes) {
  if (overlap(x, x_bytes, y, y_bytes)) refuse(op, "input and output overlap, expected separate memory");
}

void check_same_or_apart(std::string_view op, const void* x, const void* y, std::size_t bytes) {
  if (x != y && overlap(x, bytes, y, bytes))
    refuse(op, "input and output overlap in part, expected the same or separate memory");
}

namespace {

template <class T>
double as_double(T value) {
  return static_cast<double>(value);
}
double as_double(Half value) { return to_float(value); }
double as_double(BFloat16 value) { return to_float(value); }

template <class T>
void assign(T& to, double value) {
  to = static_cast<T>(value);
}
void assign(Half& to, double value) { to = to_half(static_cast<float>(value)); }
void assign(BFloat16& to, double value) { to = to_bfloat16(static_cast<float>(value)); }

/// Calls visit(T()) with the host's type for `dtype`.
template <class Visit>
void with_host_type(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::f32: return visit(float());
    case DType::f16: return visit(Half());
    case DType::bf16: return visit(BFloat16());
    case DType::i32: return visit(std::int32_t());  // NOLINT(bugprone-branch-clone): the types differ
    case DType::i64: return visit(std::int64_t());
    case DType::u8: return visit(std::uint8_t());
  }
}

}  // namespace

std::vector<double> read_values(DType dtype, const void* from, std::size_t elements) {
  std::vector<double> values(elements);
  with_host_type(dtype, [&]<class T>(T) {
    for (std::size_t i = 0; i < elements; ++i) values[i] = as_double(static_cast<const T*>(from)[i]);
  });
  return values;
}

void write_values(DType dtype, void* to, std::span<const double> values) {
  with_host_type(dtype, [&]<class T>(T) {
    for (std::size_t i = 0; i < values.size(); ++i) assign(static_cast<T*>(to)[i], values[i]);
  });
}

}  // namespace gradring::kernels::lib
