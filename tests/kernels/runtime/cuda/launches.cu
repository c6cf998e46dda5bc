// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/runtime/cuda/launches.h"

#include "kernels/simt/simt.h"

namespace gradring::tests {
namespace {

__global__ void nothing_kernel() {}

}  // namespace

void launch_nothing(kernels::Stream& stream, std::size_t shared_bytes) {
  simt::launch<nothing_kernel>(stream, simt::Config{.shared_bytes = shared_bytes});
}

void launch_nothing_for(kernels::Stream& stream, std::size_t elements) {
  simt::launch<nothing_kernel>(stream, simt::grid_for(stream, elements));
}

const void* nothing_kernel_address() { return reinterpret_cast<const void*>(nothing_kernel); }

}  // namespace gradring::tests
