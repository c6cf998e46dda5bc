// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/sum.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "kernels/base/error.h"
#include "kernels/lib/native_vector.h"

namespace gradring::comm {
inline namespace GRADRING_KERNEL_COPY {
namespace {

using kernels::BFloat16;
using kernels::DType;
/// Bit-identical to kernels::to_half and to_float, by test.
using Float16 = kernels::lib::NativeHalf;

float sum(float a, float b) { return a + b; }
Float16 sum(Float16 a, Float16 b) { return static_cast<Float16>(static_cast<float>(a) + static_cast<float>(b)); }
BFloat16 sum(BFloat16 a, BFloat16 b) { return kernels::to_bfloat16(to_float(a) + to_float(b)); }
// Unsigned, because signed overflow is undefined.
std::uint32_t sum(std::uint32_t a, std::uint32_t b) { return a + b; }
std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a + b; }

template <class T>
void add(std::byte* to_bytes, const std::byte* from_bytes, std::size_t elements) {
  T* __restrict to = reinterpret_cast<T*>(to_bytes);
  const T* __restrict from = reinterpret_cast<const T*>(from_bytes);
  for (std::size_t i = 0; i < elements; ++i) to[i] = sum(to[i], from[i]);
}

template <class T>
void sum_two(std::byte* mine_bytes, std::byte* other_bytes, std::size_t elements) {
  T* __restrict mine = reinterpret_cast<T*>(mine_bytes);
  T* __restrict other = reinterpret_cast<T*>(other_bytes);
  for (std::size_t i = 0; i < elements; ++i) mine[i] = other[i] = sum(other[i], mine[i]);
}

/// Sums blockwise in a buffer that fits the first-level cache, so that every part is read and written once.
template <class T>
void sum_many(std::byte* mine, std::span<std::byte* const> others, std::size_t elements) {
  constexpr std::size_t kBlockBytes = 4096;
  constexpr std::size_t kBlock = kBlockBytes / sizeof(T);
  alignas(64) std::byte partial[kBlockBytes];
  for (std::size_t begin = 0; begin < elements; begin += kBlock) {
    const std::size_t offset = begin * sizeof(T);
    const std::size_t count = std::min(kBlock, elements - begin);
    std::memcpy(partial, others.front() + offset, count * sizeof(T));
    for (std::byte* other : others.subspan(1)) add<T>(partial, other + offset, count);
    add<T>(mine + offset, partial, count);
    for (std::byte* other : others) std::memcpy(other + offset, mine + offset, count * sizeof(T));
  }
}

/// Calls visit(T{}) with the type in which elements of `dtype` are added.
template <class Visit>
void with_summed_type(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::f32: return visit(float{});
    case DType::f16: return visit(Float16{});
    case DType::bf16: return visit(BFloat16{});
    case DType::i32: return visit(std::uint32_t{});
    case DType::i64: return visit(std::uint64_t{});
    case DType::u8: break;
  }
  throw InvalidArgument("cannot sum dtype " + std::string(name_of(dtype)) +
                        " over ranks: use f32, f16, bf16, i32 or i64");
}

void add_into(std::byte* to, const std::byte* from, std::size_t elements, DType dtype) {
  with_summed_type(dtype, [&](auto type) { add<decltype(type)>(to, from, elements); });
}

void sum_into_all(std::byte* mine, std::span<std::byte* const> others, std::size_t elements, DType dtype) {
  with_summed_type(dtype, [&](auto type) {
    using T = decltype(type);
    if (others.size() == 1) return sum_two<T>(mine, others.front(), elements);
    if (!others.empty()) sum_many<T>(mine, others, elements);
  });
}

}  // namespace

SumLoops sum_loops() { return {.add_into = add_into, .sum_into_all = sum_into_all}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::comm
