// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/lib/kernels.h"

#include <cstring>

#include "kernels/lib/element.h"
#include "kernels/lib/register_sums.h"
#include "kernels/lib/rows.h"
#include "kernels/lib/split_k.h"
#include "kernels/lib/tensor_core.h"
#include "kernels/ops/conv2d/patches.cuh"
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

__global__ void divide_kernel(kernels::conv2d::Divisor divisor, const int* dividends, std::size_t count, int* quotients,
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
  simt::launch_flat<divide_kernel>(stream, simt::grid_for(stream, count), kernels::conv2d::Divisor(divisor), dividends,
                                   count, quotients, remainders);
}

void sum_slices(kernels::Stream& stream, float* slices, int count, std::int64_t elements, float* to, bool accumulate) {
  kernels::lib::sum_slices(stream, slices, count, elements, to, accumulate);
}

int slices_of(std::int64_t k_tiles, std::int64_t wanted, std::int64_t min_k_tiles) {
  return kernels::lib::slices_of(k_tiles, wanted, min_k_tiles);
}

namespace {

namespace lib = kernels::lib;

constexpr int kMostRows = 64;
constexpr int kWords = 8;  // in a row of a matrix

template <bool kTranspose>
__global__ void load_matrices_kernel(SIMT_GRID_CONST(MatrixLoad) load) {
  SIMT_SHARED(std::uint16_t[(kMostRows + 1) * kWords], words);
  const unsigned lane = threadIdx.x;
  for (unsigned i : simt::block_range(0, static_cast<unsigned>(load.row_count) * kWords)) words[i] = load.words[i];
  __syncwarp();  // the rows of all lanes are there
  if (!load.everybody && lane == 31) return;
  const void* row = reinterpret_cast<const char*>(words + load.rows[lane] * kWords) + load.skew;
  std::uint32_t registers[4];
  if constexpr (kTranspose)
    lib::ldmatrix_x4_trans(registers, row);
  else
    lib::ldmatrix_x4(registers, row);
  for (unsigned i = 0; i < 4; ++i) load.registers[lane * 4 + i] = registers[i];
}

__global__ void load_what_others_wrote_kernel(std::uint32_t* to) {
  SIMT_SHARED(std::uint16_t[32][kWords], rows);
  const unsigned lane = threadIdx.x;
  for (auto& word : rows[31 - lane]) word = static_cast<std::uint16_t>(lane);
  __syncwarp();  // row `lane` is another lane's
  std::uint32_t registers[4];
  lib::ldmatrix_x4(registers, rows[lane]);
  for (unsigned i = 0; i < 4; ++i) to[lane * 4 + i] = registers[i];
}

template <class T>
__device__ std::uint32_t pair_of(T low, T high) {
  const T both[2] = {low, high};
  std::uint32_t pair = 0;
  std::memcpy(&pair, both, sizeof pair);
  return pair;
}

template <class T>
__global__ void multiply_places_kernel(const T* a, const T* b, float* c) {
  const int lane = static_cast<int>(threadIdx.x);
  const auto in_a = [&](int i) {
    const simt::Position position = simt::mma_position_in_a(lane, i);
    return a[position.row * 16 + position.column];
  };
  const auto in_b = [&](int i) {
    const simt::Position position = simt::mma_position_in_b(lane, i);
    return b[position.row * 8 + position.column];
  };
  const auto in_c = [&](int i) -> float& {
    const simt::Position position = simt::mma_position_in_c(lane, i);
    return c[position.row * 8 + position.column];
  };
  std::uint32_t a_tile[4], b_tile[2];
  for (int i = 0; i < 4; ++i) a_tile[i] = pair_of(in_a(2 * i), in_a(2 * i + 1));
  for (int i = 0; i < 2; ++i) b_tile[i] = pair_of(in_b(2 * i), in_b(2 * i + 1));
  float sums[4] = {in_c(0), in_c(1), in_c(2), in_c(3)};
  lib::mma_m16n8k16<T>(sums, a_tile, b_tile[0], b_tile[1]);
  for (int i = 0; i < 4; ++i) in_c(i) = sums[i];
}

template <class T>
__global__ void multiply_loaded_kernel(Stored stored, const T* a, const T* b, float* c) {
  constexpr int kPitch = 24;  // rows of 48 bytes: multiples of 16
  SIMT_SHARED(T[16 * kPitch], a_rows);
  SIMT_SHARED(T[16 * kPitch], b_rows);
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 256; i += 32) {
    a_rows[i / 16 * kPitch + i % 16] = a[i];
    b_rows[i / 16 * kPitch + i % 16] = b[i];
  }
  __syncwarp();  // both tiles are there
  const auto in = [&](const T* rows, simt::Position position) {
    return rows + position.row * kPitch + position.column;
  };
  std::uint32_t a_tile[4], b_tiles[4];
  if (stored.a_by_inner)
    lib::ldmatrix_x4_trans(a_tile, in(a_rows, simt::matrices_across(lane)));
  else
    lib::ldmatrix_x4(a_tile, in(a_rows, simt::matrices_down(lane)));
  if (stored.b_by_column)
    lib::ldmatrix_x4(b_tiles, in(b_rows, simt::matrices_across(lane)));
  else
    lib::ldmatrix_x4_trans(b_tiles, in(b_rows, simt::matrices_down(lane)));
  for (int tile = 0; tile < 2; ++tile) {
    float sums[4] = {};
    lib::mma_m16n8k16<T>(sums, a_tile, b_tiles[2 * tile], b_tiles[2 * tile + 1]);
    for (int i = 0; i < 4; ++i) {
      const simt::Position position = simt::mma_position_in_c(lane, i);
      c[position.row * 16 + 8 * tile + position.column] = sums[i];
    }
  }
}

constexpr unsigned kWarp = 32;

/// Calls visit(Element<T>()) for the two types of tensor cores.
template <class Visit>
void with_half(kernels::DType dtype, Visit visit) {
  if (dtype == kernels::DType::f16)
    visit(lib::Element<__half>());
  else
    visit(lib::Element<__nv_bfloat16>());
}

}  // namespace

void load_matrices(kernels::Stream& stream, const MatrixLoad& load) {
  const simt::Config warp{.block = kWarp};
  if (load.transpose)
    simt::launch<load_matrices_kernel<true>>(stream, warp, load);
  else
    simt::launch<load_matrices_kernel<false>>(stream, warp, load);
}

void load_what_others_wrote(kernels::Stream& stream, std::uint32_t* registers) {
  simt::launch<load_what_others_wrote_kernel>(stream, {.block = kWarp}, registers);
}

void multiply_places(kernels::Stream& stream, kernels::DType dtype, const void* a, const void* b, float* c) {
  with_half(dtype, [&](auto element) {
    using T = typename decltype(element)::type;
    simt::launch<multiply_places_kernel<T>>(stream, {.block = kWarp}, static_cast<const T*>(a),
                                            static_cast<const T*>(b), c);
  });
}

void multiply_loaded(kernels::Stream& stream, kernels::DType dtype, Stored stored, const void* a, const void* b,
                     float* c) {
  with_half(dtype, [&](auto element) {
    using T = typename decltype(element)::type;
    simt::launch<multiply_loaded_kernel<T>>(stream, {.block = kWarp}, stored, static_cast<const T*>(a),
                                            static_cast<const T*>(b), c);
  });
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::tests
