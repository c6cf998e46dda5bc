// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "kernels/runtime/dtype.h"

namespace gradring::comm {

/// The loops of comm/transport/sum.h, compiled once for each level of the instruction set (kernels/lib/level_copies.h).
struct SumLoops {
  void (*add_into)(std::byte* to, const std::byte* from, std::size_t elements, kernels::DType dtype);
  void (*sum_into_all)(std::byte* mine, std::span<std::byte* const> others, std::size_t elements, kernels::DType dtype);
};

}  // namespace gradring::comm
