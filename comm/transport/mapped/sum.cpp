// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/mapped/sum.h"

#include <string>

#include "kernels/runtime/error.h"

namespace gradring::comm {
namespace {

using kernels::BFloat16;
using kernels::DType;
/// The compiler's own binary16: it converts vectors in hardware, where kernels::to_float goes bit by bit. Equal
/// results, by test.
using Float16 = _Float16;

float sum(float a, float b) { return a + b; }
Float16 sum(Float16 a, Float16 b) { return static_cast<Float16>(static_cast<float>(a) + static_cast<float>(b)); }
BFloat16 sum(BFloat16 a, BFloat16 b) { return kernels::to_bfloat16(to_float(a) + to_float(b)); }
// Unsigned, because an overflow of signed integers is undefined.
std::uint32_t sum(std::uint32_t a, std::uint32_t b) { return a + b; }
std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a + b; }

template <class T>
void add(std::byte* to_bytes, const std::byte* from_bytes, std::size_t elements) {
  T* __restrict to = reinterpret_cast<T*>(to_bytes);
  const T* __restrict from = reinterpret_cast<const T*>(from_bytes);
  for (std::size_t i = 0; i < elements; ++i) to[i] = sum(to[i], from[i]);
}

}  // namespace

void add_into(std::byte* to, const std::byte* from, std::size_t elements, DType dtype) {
  switch (dtype) {
    case DType::f32: return add<float>(to, from, elements);
    case DType::f16: return add<Float16>(to, from, elements);
    case DType::bf16: return add<BFloat16>(to, from, elements);
    case DType::i32: return add<std::uint32_t>(to, from, elements);
    case DType::i64: return add<std::uint64_t>(to, from, elements);
    case DType::u8: break;
  }
  throw InvalidArgument("a sum of " + std::string(name_of(dtype)) +
                        " over ranks was asked for: use f32, f16, bf16, i32 or i64");
}

bool has_sum(DType dtype) { return dtype != DType::u8; }

}  // namespace gradring::comm
