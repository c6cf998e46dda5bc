// SPDX-License-Identifier: Apache-2.0
// Idea: dz of a whole image, and w, stay in shared memory (resident.cuh).
// Mapping: each block takes every gridDim.x-th image and 32 inputs of it; each warp computes 16 positions at a time.
// Traffic and bound: dy and codes are read once for 32 inputs, w once a block; dx is written. Bound by waiting for an
//   image while other blocks compute, then by shared memory: three ldmatrix for four products.
// Gains over the step before (3_mma_backward.cu): dz is computed once instead of once for each kernel position; no
//   addresses and bounds in the main loop, but margins of zeros in shared memory.
// Still slow because: the next image is not on the way while one is multiplied; small batches fill half a GPU.
// Limits: f16 and bf16; stride 1, padding less than the kernel; inputs a multiple of 8, filters of 16; dz and w of a
//   block fit 96 KB. Else 3_mma_backward.cu does it. An infinity in dy or w times a zero is NaN.

#include <algorithm>

#include "kernels/lib/reference.h"
#include "kernels/ops/conv_relu_pool/resident.cuh"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace resident {
namespace {

using conv2d::Divisor;

constexpr std::int64_t kMostBlocks = 264;  // two for each multiprocessor of a large GPU
constexpr int kMostWarps = 12;

struct Shape {
  GradientImage gradient;
  int batch, positions, inputs, kernel_height, kernel_width;  // positions of x
  Divisor taps, width;                                        // of x
};

template <class T>
__global__ void __launch_bounds__(32 * kMostWarps)
    conv_relu_pool_resident_dgrad_kernel(SIMT_GRID_CONST(Shape) s, SIMT_GRID_CONST(PooledGradient<T>) dz,
                                         const T* __restrict__ w, T* __restrict__ dx) {
  SIMT_DYNAMIC_SHARED(T, memory);  // dz, then w: rows (kernel position, filter) of 32 inputs
  const GradientImage& g = s.gradient;
  T* const filters = memory + g.elements();
  const int first_input = static_cast<int>(blockIdx.y) * kInputs;
  constexpr int kVectors = kInputs / kVector;
  clear(reinterpret_cast<uint4*>(memory), g.elements() / kVector);
  for (int i = static_cast<int>(threadIdx.x); i < g.channels * s.taps.value() * kVectors;
       i += static_cast<int>(blockDim.x)) {
    const int input = i % kVectors * kVector;
    const auto [filter, tap] = s.taps.divide(i / kVectors);
    T* to = filters + (tap * g.channels + filter) * kInputPitch + input;
    if (first_input + input < s.inputs)
      async_copy16(to, w + std::int64_t{i / kVectors} * s.inputs + first_input + input);
    else
      simt::store_as(to, uint4{});
  }
  async_commit();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const simt::Position of_lane = simt::matrices_down(lane);
  for (int image = static_cast<int>(blockIdx.x); image < s.batch; image += static_cast<int>(gridDim.x)) {
    __syncthreads();  // margins are cleared, and no warp still reads the image before
    store_gradient(memory, g, dz, image, 0);
    async_wait<0>();
    __syncthreads();  // dz and w are complete
    for (int first = 16 * warp; first < s.positions; first += static_cast<int>(blockDim.x) / 2) {
      const int row = first + of_lane.row < s.positions ? first + of_lane.row : s.positions - 1;
      const auto [y, x] = s.width.divide(row);
      const T* a_row =
          memory + ((y + s.kernel_height - 1) * g.line + x + s.kernel_width - 1) * g.pitch + of_lane.column;
      const T* b_row = filters + of_lane.row * kInputPitch + of_lane.column;
      float sums[kInputs / 8][4] = {};
      for (int kh = 0; kh < s.kernel_height; ++kh)
        for (int kw = 0; kw < s.kernel_width; ++kw) {
          const T* a_here = a_row - (kh * g.line + kw) * g.pitch;
          for (int k = 0; k < g.channels; k += 16, b_row += 16 * kInputPitch) {
            std::uint32_t a[4], b[kInputs / 16][4];
            lib::ldmatrix_x4(a, a_here + k);
            load_columns(b, b_row);
            multiply_add<T>(sums, a, b);
          }
        }
      T* const dx_here = dx + (std::int64_t{image} * s.positions + first) * s.inputs + first_input;
      for_each_pair(sums, lane, [&](int of_tile, int input, float even, float odd) {
        if (first + of_tile < s.positions && first_input + input < s.inputs)
          simt::store_as(dx_here + std::int64_t{of_tile} * s.inputs + input,
                         Pair<T>{{lib::from_f32<T>(even), lib::from_f32<T>(odd)}});
      });
    }
  }
}

/// With a kernel's extent less one of zeros before it, less the padding, and what an input's last use needs behind it.
struct Sizes {
  std::int64_t line, rows, bytes;

  explicit Sizes(const Geometry& g)
      : line(g.conv.in_width + g.conv.kernel_width - 1),
        rows((g.conv.in_height + g.conv.kernel_height - 1) * line),
        bytes(2 * (rows * pitch_of(g.conv.out_channels) + g.conv.taps() * g.conv.out_channels * kInputPitch)) {}
};

bool knows(const Geometry& g) {
  const conv2d::Geometry& conv = g.conv;
  return conv.stride == 1 && conv.padding < conv.kernel_height && conv.padding < conv.kernel_width &&
         conv.in_channels % kVector == 0 && conv.out_channels % 16 == 0 && input_blocks(g) <= 65535 &&
         Sizes(g).bytes <= kMostSharedBytes;
}

}  // namespace

bool dgrad(Stream& stream, const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  const conv2d::Geometry& conv = g.conv;
  if (!knows(g) || !conv2d::has_aligned_rows(static_cast<const std::uint16_t*>(args.w), conv.in_channels) ||
      reinterpret_cast<std::uintptr_t>(args.dx) % 4 != 0)
    return false;
  const Sizes sizes(g);
  const std::int64_t first =
      (conv.kernel_height - 1 - conv.padding) * sizes.line + conv.kernel_width - 1 - conv.padding;
  const Shape shape{.gradient = gradient_image(g, conv.out_channels, sizes.line, sizes.rows, first),
                    .batch = lib::narrow<int>("conv_relu_pool", "batch", conv.batch),
                    .positions = as_int(conv.in_height * conv.in_width),
                    .inputs = as_int(conv.in_channels),
                    .kernel_height = as_int(conv.kernel_height),
                    .kernel_width = as_int(conv.kernel_width),
                    .taps = Divisor(as_int(conv.taps())),
                    .width = Divisor(as_int(conv.in_width))};
  const std::int64_t warps = std::clamp<std::int64_t>(lib::ceil_div(shape.positions, 16), 1, kMostWarps);
  const std::int64_t blocks = std::min(conv.batch, std::max<std::int64_t>(1, kMostBlocks / input_blocks(g)));
  const simt::Config config{.grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(input_blocks(g))),
                            .block = dim3(static_cast<unsigned>(32 * warps)),
                            .shared_bytes = static_cast<std::size_t>(sizes.bytes)};
  bool launched = false;
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    const auto dz = pooled_gradient<T>(args);
    if (!dz.aligned) return;
    launched = true;
    simt::launch<conv_relu_pool_resident_dgrad_kernel<T>>(stream, config, shape, dz, static_cast<const T*>(args.w),
                                                          static_cast<T*>(args.dx));
  });
  return launched;
}

}  // namespace resident
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
