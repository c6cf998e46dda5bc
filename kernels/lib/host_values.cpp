// SPDX-License-Identifier: Apache-2.0
#include "kernels/lib/host_values.h"

#include <cstdint>

namespace gradring::kernels::lib {
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

template <class T>
std::vector<double> read(const void* from, std::size_t elements) {
  std::vector<double> values(elements);
  for (std::size_t i = 0; i < elements; ++i) values[i] = as_double(static_cast<const T*>(from)[i]);
  return values;
}

template <class T>
void write(void* to, std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) assign(static_cast<T*>(to)[i], values[i]);
}

}  // namespace

std::vector<double> read_values(DType dtype, const void* from, std::size_t elements) {
  switch (dtype) {
    case DType::f32: return read<float>(from, elements);
    case DType::f16: return read<Half>(from, elements);
    case DType::bf16: return read<BFloat16>(from, elements);
    case DType::i32: return read<std::int32_t>(from, elements);
    case DType::i64: return read<std::int64_t>(from, elements);
    case DType::u8: return read<std::uint8_t>(from, elements);
  }
  return {};
}

void write_values(DType dtype, void* to, std::span<const double> values) {
  switch (dtype) {
    case DType::f32: return write<float>(to, values);
    case DType::f16: return write<Half>(to, values);
    case DType::bf16: return write<BFloat16>(to, values);
    case DType::i32: return write<std::int32_t>(to, values);
    case DType::i64: return write<std::int64_t>(to, values);
    case DType::u8: return write<std::uint8_t>(to, values);
  }
}

}  // namespace gradring::kernels::lib
