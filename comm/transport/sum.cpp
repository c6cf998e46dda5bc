// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/sum.h"

#include "kernels/lib/level_copies.h"

namespace gradring::comm {

GRADRING_DECLARE_COPIES(SumLoops, sum_loops);  // sum_loops.cpp

namespace {

const SumLoops& loops() {
  static const SumLoops loops = GRADRING_COPY_TO_RUN(sum_loops)();
  return loops;
}

}  // namespace

void add_into(std::byte* to, const std::byte* from, std::size_t elements, kernels::DType dtype) {
  loops().add_into(to, from, elements, dtype);
}

void sum_into_all(std::byte* mine, std::span<std::byte* const> others, std::size_t elements, kernels::DType dtype) {
  loops().sum_into_all(mine, others, elements, dtype);
}

bool has_sum(kernels::DType dtype) { return dtype != kernels::DType::u8; }

}  // namespace gradring::comm
