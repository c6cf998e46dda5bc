// SPDX-License-Identifier: Apache-2.0
#include "kernels/fill/fill.h"

#include <limits>
#include <string>
#include <vector>

#include "kernels/lib/arguments.h"
#include "kernels/lib/host_values.h"
#include "kernels/runtime/error.h"

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
  check(holds(args.dtype, args.value),
        "fill: " + std::to_string(args.value) + " is no value of type " + std::string(name_of(args.dtype)));
  if (args.elements) lib::check_pointer("fill", "y", args.y);
}

namespace reference {

void run(const Args& args) {
  check_args(args);
  lib::write_values(args.dtype, args.y, std::vector<double>(args.elements, args.value));
}

}  // namespace reference
}  // namespace gradring::kernels::fill
