// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/elementwise/elementwise.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"

namespace gradring::kernels::fill {
namespace {

template <class T>
bool holds(double value) {
  return value >= static_cast<double>(std::numeric_limits<T>::min()) &&
         value <= static_cast<double>(std::numeric_limits<T>::max()) &&
         value == static_cast<double>(static_cast<std::int64_t>(value));
}

bool holds(DType dtype, double value) {
  switch (dtype) {
    case DType::i32: return holds<std::int32_t>(value);
    case DType::u8: return holds<std::uint8_t>(value);
    case DType::i64: return value >= -0x1p53 && value <= 0x1p53 && holds<std::int64_t>(value);
    default: return true;
  }
}

}  // namespace

void check_args(const Args& args) {
  check(holds(args.dtype, args.value), [&] {
    return "fill: " + std::to_string(args.value) + " does not fit type " + std::string(name_of(args.dtype));
  });
  if (args.elements) lib::check_pointer("fill", "y", args.y);
}

void reference_run(const Args& args) {
  check_args(args);
  lib::write_values(args.dtype, args.y, std::vector<double>(args.elements, args.value));
}

}  // namespace gradring::kernels::fill

namespace gradring::kernels::scale {

void check_args(const Args& args) {
  lib::check_floating("scale", "dtype", args.dtype);
  if (args.elements == 0) return;
  lib::check_pointers("scale", {{"x", args.x}, {"y", args.y}});
  lib::check_same_or_apart("scale", args.x, args.y, args.elements * size_of(args.dtype));
}

void reference_run(const Args& args) {
  check_args(args);
  const std::vector<double> x = lib::read_values(args.dtype, args.x, args.elements);
  std::vector<double> y = x;
  for (std::size_t i = 0; i < args.elements; ++i) y[i] = args.factor * x[i];
  lib::write_values(args.dtype, args.y, y);
}

}  // namespace gradring::kernels::scale

namespace gradring::kernels::accumulate {

bool can_add(DType dtype) { return dtype != DType::u8; }

void check_args(const Args& args) {
  if (!can_add(args.dtype))
    throw InvalidArgument("accumulate: dtype is " + std::string(name_of(args.dtype)) +
                          ", expected f32, f16, bf16, i32 or i64");
  if (args.elements == 0) return;
  lib::check_pointers("accumulate", {{"x", args.x}, {"y", args.y}});
  lib::check_same_or_apart("accumulate", args.x, args.y, args.elements * size_of(args.dtype));
}

namespace {

template <class Bits>
void add_whole(const Args& args) {
  const auto* const x = static_cast<const Bits*>(args.x);
  auto* const y = static_cast<Bits*>(args.y);
  for (std::size_t i = 0; i < args.elements; ++i) y[i] += x[i];
}

void add_rounded(const Args& args) {
  const std::vector<double> x = lib::read_values(args.dtype, args.x, args.elements);
  std::vector<double> y = lib::read_values(args.dtype, args.y, args.elements);
  for (std::size_t i = 0; i < args.elements; ++i) y[i] += x[i];
  lib::write_values(args.dtype, args.y, y);
}

}  // namespace

void reference_run(const Args& args) {
  check_args(args);
  switch (args.dtype) {
    case DType::i32: return add_whole<std::uint32_t>(args);
    case DType::i64: return add_whole<std::uint64_t>(args);
    default: return add_rounded(args);
  }
}

}  // namespace gradring::kernels::accumulate

namespace gradring::kernels::cast {

void check_args(const Args& args) {
  lib::check_floating("cast", "from", args.from);
  lib::check_floating("cast", "to", args.to);
  if (args.elements == 0) return;
  lib::check_pointers("cast", {{"x", args.x}, {"y", args.y}});
  lib::check_apart("cast", args.x, args.elements * size_of(args.from), args.y, args.elements * size_of(args.to));
}

void reference_run(const Args& args) {
  check_args(args);
  lib::write_values(args.to, args.y, lib::read_values(args.from, args.x, args.elements));
}

}  // namespace gradring::kernels::cast

namespace gradring::kernels::relu {

void check_args(const ForwardArgs& args) {
  lib::check_floating("relu forward", "dtype", args.dtype);
  if (args.elements == 0) return;
  lib::check_pointers("relu forward", {{"x", args.x}, {"y", args.y}});
  lib::check_same_or_apart("relu forward", args.x, args.y, args.elements * size_of(args.dtype));
}

void check_args(const BackwardArgs& args) {
  lib::check_floating("relu backward", "dtype", args.dtype);
  if (args.elements == 0) return;
  lib::check_pointers("relu backward", {{"y", args.y}, {"dy", args.dy}, {"dx", args.dx}});
  const std::size_t bytes = args.elements * size_of(args.dtype);
  lib::check_same_or_apart("relu backward", args.y, args.dx, bytes);
  lib::check_same_or_apart("relu backward", args.dy, args.dx, bytes);
}

void reference_forward(const ForwardArgs& args) {
  check_args(args);
  std::vector<double> y = lib::read_values(args.dtype, args.x, args.elements);
  for (double& value : y)
    if (value < 0) value = 0;
  lib::write_values(args.dtype, args.y, y);
}

void reference_backward(const BackwardArgs& args) {
  check_args(args);
  const std::vector<double> y = lib::read_values(args.dtype, args.y, args.elements);
  std::vector<double> dx = lib::read_values(args.dtype, args.dy, args.elements);
  for (std::size_t i = 0; i < args.elements; ++i)
    if (!(y[i] > 0)) dx[i] = 0;
  lib::write_values(args.dtype, args.dx, dx);
}

}  // namespace gradring::kernels::relu
