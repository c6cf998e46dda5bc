// SPDX-License-Identifier: Apache-2.0
#include "comm/bench/exact_sums.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/runtime/error.h"

namespace gradring::comm::bench {
namespace {

using kernels::DType;

/// Period of the contributions; a prime, so that no shard or chunk equals another.
constexpr std::size_t kPeriod = 251;

void put(float& to, int value) { to = static_cast<float>(value); }
void put(kernels::Half& to, int value) { to = kernels::to_half(static_cast<float>(value)); }
void put(kernels::BFloat16& to, int value) { to = kernels::to_bfloat16(static_cast<float>(value)); }
void put(std::int32_t& to, int value) { to = value; }
void put(std::int64_t& to, int value) { to = value; }

template <class T>
bool equal(const T& found, int value) {
  return found == static_cast<T>(value);
}
bool equal(kernels::Half found, int value) { return to_float(found) == static_cast<float>(value); }
bool equal(kernels::BFloat16 found, int value) { return to_float(found) == static_cast<float>(value); }

/// Calls visit(T{}) with the host type of `dtype`.
template <class Visit>
auto with_type(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::f32: return visit(float{});
    case DType::f16: return visit(kernels::Half{});
    case DType::bf16: return visit(kernels::BFloat16{});
    case DType::i32: return visit(std::int32_t{});
    case DType::i64: return visit(std::int64_t{});
    case DType::u8: break;
  }
  throw InvalidArgument("cannot sum dtype " + std::string(name_of(dtype)) + ": use f32, f16, bf16, i32 or i64");
}

}  // namespace

int ExactSums::contribution(int rank, std::size_t element) const {
  const int largest = std::clamp(256 / world_size, 1, 15);
  const std::size_t hash = (element % kPeriod) * 7 + static_cast<std::size_t>(rank) * 13;
  return static_cast<int>(hash % static_cast<std::size_t>(2 * largest + 1)) - largest;
}

int ExactSums::sum(std::size_t element) const {
  int total = 0;
  for (int rank = 0; rank < world_size; ++rank) total += contribution(rank, element);
  return total;
}

void ExactSums::fill(std::byte* array, std::size_t elements, DType dtype, int rank) const {
  with_type(dtype, [&](auto type) {
    auto* const values = reinterpret_cast<decltype(type)*>(array);
    for (std::size_t i = 0; i < elements; ++i) put(values[i], contribution(rank, i));
  });
}

std::size_t ExactSums::count_wrong(const std::byte* array, std::size_t elements, DType dtype) const {
  std::vector<int> sums;
  for (std::size_t i = 0; i < kPeriod; ++i) sums.push_back(sum(i));
  return with_type(dtype, [&](auto type) {
    const auto* const values = reinterpret_cast<const decltype(type)*>(array);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < elements; ++i) wrong += equal(values[i], sums[i % kPeriod]) ? 0 : 1;
    return wrong;
  });
}

}  // namespace gradring::comm::bench
