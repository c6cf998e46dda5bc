// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/case_maker.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/lib/arguments.h"
#include "kernels/runtime/philox.h"

namespace gradring::kernels::bench {

std::int64_t CaseMaker::extent(const std::string& name, std::int64_t by_default) {
  names_.insert(name);
  const auto given = world_.extents.find(name);
  const std::int64_t value = given == world_.extents.end() ? by_default : given->second;
  shape_ += (shape_.empty() ? "" : ",") + name + "=" + std::to_string(value);
  return value;
}

KernelCase CaseMaker::make(const std::string& name) {
  KernelCase made;
  made.name = name;
  made.shape = std::exchange(shape_, "");
  made.dtype = world_.dtype;
  return made;
}

BenchArray& CaseMaker::input(KernelCase& to, DType dtype, std::int64_t elements, double low, double high) {
  std::vector<double> values(static_cast<std::size_t>(elements));
  const std::uint64_t seed = ++arrays_;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = low + (high - low) * uniform_from(philox(seed, i)[0]);
  if (!lib::is_floating(dtype))
    std::ranges::transform(values, values.begin(), [](double value) { return std::floor(value); });
  return add(to, dtype, values);
}

BenchArray& CaseMaker::output(KernelCase& to, DType dtype, std::int64_t elements, Bound bound) {
  const double nothing = lib::is_floating(dtype) ? std::numeric_limits<double>::quiet_NaN() : 77;
  BenchArray& array = add(to, dtype, std::vector<double>(static_cast<std::size_t>(elements), nothing));
  also_output(to, array, std::move(bound));
  to.unread_bytes += static_cast<double>(array.bytes());
  return array;
}

BenchArray& CaseMaker::workspace(KernelCase& to, std::size_t bytes) {
  return add(to, DType::u8, std::vector<double>(bytes, 77));
}

BenchArray& CaseMaker::bytes(KernelCase& to, std::span<const std::byte> start) {
  std::vector<double> values;
  for (const std::byte byte : start) values.push_back(std::to_integer<int>(byte));
  return add(to, DType::u8, values);
}

BenchArray& CaseMaker::add(KernelCase& to, DType dtype, std::span<const double> start) {
  to.arrays.push_back(std::make_unique<BenchArray>(world_.device, dtype, start));
  return *to.arrays.back();
}

double rounding(DType dtype, double value) {
  switch (dtype) {
    case DType::f32: return std::max(std::fabs(value) * 0x1p-24, 0x1p-150);
    case DType::f16: return std::max(std::fabs(value) * 0x1p-11, 0x1p-25);
    case DType::bf16: return std::max(std::fabs(value) * 0x1p-8, 0x1p-134);
    default: return 0;
  }
}

Bound exact() {
  return [](double) { return 0.0; };
}

Bound roundings(DType dtype, double count, double absolute) {
  return [=](double expected) { return absolute + count * rounding(dtype, std::fabs(expected) + absolute); };
}

Bound sum_of_products(DType dtype, std::int64_t terms) {
  return roundings(dtype, 2, static_cast<double>((terms + 1) * (terms + 1)) * 0x1p-24);
}

}  // namespace gradring::kernels::bench
