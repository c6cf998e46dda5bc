// SPDX-License-Identifier: Apache-2.0
#include "kernels/lib/arguments.h"

#include <string>

#include "kernels/runtime/error.h"

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
    refuse(op, std::string(argument) + " is of type " + std::string(name_of(dtype)) + ": it must be f32, f16 or bf16");
}

void check_at_least(std::string_view op, std::string_view argument, std::int64_t value, std::int64_t least) {
  if (value < least)
    refuse(op, std::string(argument) + " is " + std::to_string(value) + ": at least " + std::to_string(least) +
                   " is needed");
}

void check_limit(std::string_view op, std::string_view argument, std::int64_t value, std::int64_t most) {
  if (value < 0 || value > most)
    refuse(op, std::string(argument) + " is " + std::to_string(value) + ": this variant can do " +
                   std::to_string(most) + " at most; pick another, or split the work");
}

void check_pointer(std::string_view op, std::string_view argument, const void* pointer) {
  if (!pointer) refuse(op, std::string(argument) + " is a null pointer");
}

void check_weight_copy(std::string_view op, DType copy_dtype, const void* copy, const float* weights,
                       std::size_t elements) {
  if (!copy) return;
  if (copy_dtype != DType::f16 && copy_dtype != DType::bf16)
    refuse(op, "copy_dtype is " + std::string(name_of(copy_dtype)) +
                   ": a copy of the weights is of type f16 or bf16; for f32, take the weights themselves");
  check_apart(op, weights, elements * sizeof(float), copy, elements * size_of(copy_dtype));
}

void check_apart(std::string_view op, const void* x, std::size_t x_bytes, const void* y, std::size_t y_bytes) {
  if (overlap(x, x_bytes, y, y_bytes)) refuse(op, "what it reads and what it writes overlap");
}

void check_same_or_apart(std::string_view op, const void* x, const void* y, std::size_t bytes) {
  if (x != y && overlap(x, bytes, y, bytes)) refuse(op, "what it reads and what it writes overlap in part");
}

}  // namespace gradring::kernels::lib
