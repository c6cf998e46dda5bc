// SPDX-License-Identifier: Apache-2.0
#include "kernels/accumulate/accumulate.h"

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/lib/arguments.h"
#include "kernels/lib/host_values.h"
#include "kernels/runtime/error.h"

namespace gradring::kernels::accumulate {

bool can_add(DType dtype) { return dtype != DType::u8; }

void check_args(const Args& args) {
  if (!can_add(args.dtype))
    throw InvalidArgument("accumulate: dtype is " + std::string(name_of(args.dtype)) +
                          ", not f32, f16, bf16, i32 or i64");
  if (args.elements == 0) return;
  lib::check_pointer("accumulate", "x", args.x);
  lib::check_pointer("accumulate", "y", args.y);
  lib::check_same_or_apart("accumulate", args.x, args.y, args.elements * size_of(args.dtype));
}

namespace reference {
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

void run(const Args& args) {
  check_args(args);
  switch (args.dtype) {
    case DType::i32: return add_whole<std::uint32_t>(args);
    case DType::i64: return add_whole<std::uint64_t>(args);
    default: return add_rounded(args);
  }
}

}  // namespace reference
}  // namespace gradring::kernels::accumulate
