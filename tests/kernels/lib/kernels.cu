// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/lib/kernels.h"

#include "kernels/lib/block_sum.h"
#include "kernels/lib/divisor.h"
#include "kernels/lib/dots.h"
#include "kernels/lib/rows.h"
#include "kernels/lib/strip.h"
#include "kernels/simt/simt.h"

namespace gradring::tests {
inline namespace GRADRING_KERNEL_COPY {
namespace {

__global__ void add_blocks_kernel(const float* values, float* sums) {
  const unsigned row = blockIdx.x * 64 + threadIdx.x;
  const float mine[3] = {values[3 * row], values[3 * row + 1], values[3 * row + 2]};
  kernels::lib::block_sum<64>(mine, [&](int j, float sum) { sums[3 * blockIdx.x + static_cast<unsigned>(j)] = sum; });
}

__global__ void add_block_kernel(const std::int32_t* values, std::int32_t* sum) {
  const std::int32_t mine[1] = {values[threadIdx.x]};
  kernels::lib::block_sum<256>(mine, [&](int, std::int32_t total) { *sum = total; });
}

__global__ void visit_matrix_kernel(std::int64_t rows, int cols, std::int32_t* visits) {
  for (std::int64_t row : kernels::lib::row_range(rows))
    for (int col : kernels::lib::lane_range(cols)) ++visits[row * cols + col];
}

__global__ void add_strip_kernel(const float* x, const float* factors, int rows, int width, float* sums) {
  kernels::lib::Strip<16> strip;
  for (int row = 0; row < rows; ++row) {
    strip.add(x + row * width, width);
    strip.add_product(factors[row], x + row * width, width);
  }
  float copied[16];
  strip.copy_to(copied);
  strip.for_each(width, [&](int j, float sum) { sums[j] = sum == copied[j] ? sum : -1.0f; });
}

__global__ void multiply_dots_kernel(const float* x, const float* w, int rows, int length, float* dots) {
  kernels::lib::Dots<4> products;
  products.add(x, w, length, rows, length);
  products.for_each(rows, [&](int r, float sum) { dots[r] = sum; });
}

__global__ void divide_kernel(kernels::lib::Divisor divisor, const int* dividends, std::size_t count, int* quotients,
                              int* remainders) {
  for (std::size_t i : simt::grid_range(count)) {
    const auto [quotient, remainder] = divisor.divide(dividends[i]);
    quotients[i] = quotient;
    remainders[i] = remainder;
  }
}

}  // namespace

void add_blocks(kernels::Stream& stream, const float* values, float* sums, unsigned blocks) {
  simt::launch<add_blocks_kernel>(stream, simt::Config{.grid = dim3(blocks), .block = dim3(64)}, values, sums);
}

void add_block(kernels::Stream& stream, const std::int32_t* values, std::int32_t* sum) {
  simt::launch<add_block_kernel>(stream, simt::Config{.grid = dim3(1), .block = dim3(256)}, values, sum);
}

void visit_matrix(kernels::Stream& stream, const Shape& shape, std::int64_t rows, int cols, std::int32_t* visits) {
  const simt::Config config{.grid = dim3(shape.blocks), .block = dim3(shape.lanes, shape.warps)};
  simt::launch_flat<visit_matrix_kernel>(stream, config, rows, cols, visits);
}

void visit_matrix(kernels::Stream& stream, std::int64_t rows, int cols, std::int32_t* visits) {
  simt::launch_flat<visit_matrix_kernel>(stream, kernels::lib::rows_for(stream, rows, rows * cols), rows, cols, visits);
}

void add_strip(kernels::Stream& stream, const float* x, const float* factors, int rows, int width, float* sums) {
  simt::launch_flat<add_strip_kernel>(stream, simt::Config{}, x, factors, rows, width, sums);
}

void multiply_dots(kernels::Stream& stream, const float* x, const float* w, int rows, int length, float* dots) {
  simt::launch_flat<multiply_dots_kernel>(stream, simt::Config{}, x, w, rows, length, dots);
}

void divide(kernels::Stream& stream, int divisor, const int* dividends, std::size_t count, int* quotients,
            int* remainders) {
  simt::launch_flat<divide_kernel>(stream, simt::grid_for(stream, count), kernels::lib::Divisor(divisor), dividends,
                                   count, quotients, remainders);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::tests
