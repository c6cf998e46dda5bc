// SPDX-License-Identifier: Apache-2.0
// Idea: dz of a whole image, and w, stay in shared memory (resident.cuh).
// Mapping: each block takes every gridDim.x-th image and 32 inputs of it; each warp computes 32 positions at a time.
// Traffic and bound: dy and codes are read once for 32 inputs, w once a block; dx is written in whole sectors. Bound by
//   waiting for an image while other blocks compute, then by shared memory: four ldmatrix for eight products.
// Gains over the step before (3_mma_backward.cu): dz goes to shared memory alone, which kernel positions share; no
//   addresses and bounds in the main loop, but margins of zeros in shared memory. Sizes that the compiler knows make
//   all offsets of that loop part of ldmatrix.
// Still slow because: the next image is not on the way while one is multiplied; small batches fill half a GPU.
// Limits: f16 and bf16; kernels of 3 x 3, stride 1, padding at most 2; windows of 2 x 2; inputs a multiple of 8; 32 or
//   64 filters; dz and w of a block fit 96 KB. Else 3_mma_backward.cu does it. An infinity in dy or w times a zero is
//   NaN.

#include <algorithm>

#include "kernels/lib/reference.h"
#include "kernels/ops/conv_relu_pool/resident.cuh"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace resident {
namespace {

using conv2d::Divisor;

constexpr std::int64_t kMostBlocks = 264;  // two for each multiprocessor of a large GPU
constexpr int kMostWarps = 8;
constexpr int kRows = 32;  // of a warp
constexpr int kTaps = kKernel * kKernel;

struct Shape {
  GradientImage gradient;
  int batch, positions, inputs;  // positions of x
  Divisor width;                 // of x
};

/// Lane q of four neighbours has pairs 8 j + 2 q of a row's sums; it gets, and stores, elements 8 q to 8 q + 7.
template <class T>
__device__ void store_rows(const float (&sums)[2][kInputs / 8][4], T* dx, int first, int first_input, const Shape& s) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int input = first_input + lane % 4 * kVector;
  T* const to = dx + std::int64_t{first + lane / 4} * s.inputs + input;
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < 2; ++i) {
    SIMT_UNROLL_ON_GPU
    for (int half = 0; half < 2; ++half) {
      std::uint32_t words[kInputs / 8];
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < kInputs / 8; ++j) words[j] = lib::pair_of<T>(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
      transpose_of_four(words, lane);
      if (first + 16 * i + 8 * half + lane / 4 < s.positions && input < s.inputs)
        simt::store_as(to + (16 * i + 8 * half) * s.inputs, uint4{words[0], words[1], words[2], words[3]});
    }
  }
}

template <class T, int kChannels>
__global__ void __launch_bounds__(32 * kMostWarps)
    conv_relu_pool_resident_dgrad_kernel(SIMT_GRID_CONST(Shape) s, SIMT_GRID_CONST(PooledGradient<T>) dz,
                                         const T* __restrict__ w, T* __restrict__ dx) {
  SIMT_DYNAMIC_SHARED(T, memory);  // dz, then w: rows (filter, kernel position) of 32 inputs
  const GradientImage& g = s.gradient;
  constexpr int kPitch = pitch_of(kChannels);
  constexpr int kBytes = static_cast<int>(sizeof(T));
  T* const filters = memory + g.rows * kPitch;
  const int first_input = static_cast<int>(blockIdx.y) * kInputs;
  constexpr int kVectors = kInputs / kVector;
  clear(memory, g.rows * kPitch / kVector);
  for (int i = static_cast<int>(threadIdx.x); i < kTaps * kChannels * kVectors; i += static_cast<int>(blockDim.x)) {
    const int input = i % kVectors * kVector;
    T* to = filters + i / kVectors * kInputPitch + input;
    if (first_input + input < s.inputs)
      async_copy16(to, w + std::int64_t{i / kVectors} * s.inputs + first_input + input);
    else
      simt::store_as(to, uint4{});
  }
  async_commit();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const simt::Position of_lane = simt::matrices_down(lane);
  const lib::MatrixRow b_row(filters + of_lane.row * kTaps * kInputPitch + of_lane.column);
  for (int image = static_cast<int>(blockIdx.x); image < s.batch; image += static_cast<int>(gridDim.x)) {
    __syncthreads();  // margins are cleared, and no warp still reads the image before
    store_gradient<kChannels>(memory, g, dz, image, 0, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
    async_wait<0>();
    __syncthreads();  // dz and w are complete
    for (int first = kRows * warp; first < s.positions; first += static_cast<int>(blockDim.x)) {
      const auto a_row = [&](int i) {  // for the last row of the kernel
        const int row = first + 16 * i + of_lane.row < s.positions ? first + 16 * i + of_lane.row : s.positions - 1;
        const auto [y, x] = s.width.divide(row);
        return lib::MatrixRow(memory + (y * g.line + x) * kPitch + of_lane.column);
      };
      lib::MatrixRow a_rows[2] = {a_row(0), a_row(1)};
      float sums[2][kInputs / 8][4] = {};
      for_each_constant<kKernel>([&](auto from_last) {
        constexpr int kRow = kKernel - 1 - from_last;
        for_each_constant<kKernel * kChannels / 16>([&](auto step) {
          constexpr int kColumn = step / (kChannels / 16);
          constexpr int kChannel = step % (kChannels / 16) * 16;
          constexpr int kOfA = (kKernel - 1 - kColumn) * kPitch + kChannel;
          constexpr int kOfB = (kChannel * kTaps + kRow * kKernel + kColumn) * kInputPitch;
          std::uint32_t b[kInputs / 16][4];
          load_columns<kOfB * kBytes>(b, b_row);
          SIMT_UNROLL_ON_GPU
          for (int i = 0; i < 2; ++i) {
            std::uint32_t a[4];
            a_rows[i].template load<kOfA * kBytes>(a);
            multiply_add<T>(sums[i], a, b);
          }
        });
        SIMT_UNROLL_ON_GPU
        for (lib::MatrixRow& row : a_rows) row = row + g.line * kPitch * kBytes;
      });
      store_rows(sums, dx + std::int64_t{image} * s.positions * s.inputs, first, first_input, s);
    }
  }
}

/// With a kernel's extent less one of zeros before it, less the padding, and what an input's last use needs behind it.
struct Sizes {
  std::int64_t line, rows, bytes;

  explicit Sizes(const Geometry& g)
      : line(g.conv.in_width + kKernel - 1),
        rows((g.conv.in_height + kKernel - 1) * line),
        bytes(2 * (rows * pitch_of(g.conv.out_channels) + kTaps * g.conv.out_channels * kInputPitch)) {}
};

bool knows(const Geometry& g) {
  const conv2d::Geometry& conv = g.conv;
  return conv.kernel_height == kKernel && conv.kernel_width == kKernel && conv.stride == 1 && conv.padding < kKernel &&
         g.window == kWindow && conv.in_channels % kVector == 0 &&
         (conv.out_channels == 32 || conv.out_channels == 64) && input_blocks(g) <= 65535 &&
         Sizes(g).bytes <= kMostSharedBytes;
}

}  // namespace

bool dgrad(Stream& stream, const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  const conv2d::Geometry& conv = g.conv;
  if (!knows(g) || !conv2d::has_aligned_rows(static_cast<const std::uint16_t*>(args.w), conv.in_channels) ||
      !conv2d::has_aligned_rows(static_cast<const std::uint16_t*>(args.dx), conv.in_channels))
    return false;
  const Sizes sizes(g);
  const std::int64_t first = (kKernel - 1 - conv.padding) * (sizes.line + 1);
  const Shape shape{.gradient = gradient_image(g, sizes.line, sizes.rows, first),
                    .batch = lib::narrow<int>("conv_relu_pool", "batch", conv.batch),
                    .positions = as_int(conv.in_height * conv.in_width),
                    .inputs = as_int(conv.in_channels),
                    .width = Divisor(as_int(conv.in_width))};
  const std::int64_t warps = std::clamp<std::int64_t>(lib::ceil_div(shape.positions, kRows), 1, kMostWarps);
  const std::int64_t blocks = std::min(conv.batch, std::max<std::int64_t>(1, kMostBlocks / input_blocks(g)));
  const simt::Config config{.grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(input_blocks(g))),
                            .block = dim3(static_cast<unsigned>(32 * warps)),
                            .shared_bytes = static_cast<std::size_t>(sizes.bytes)};
  return with_aligned_gradient(args, [&]<class T>(const PooledGradient<T>& dz) {
    const auto* w = static_cast<const T*>(args.w);
    auto* dx = static_cast<T*>(args.dx);
    if (conv.out_channels == 32)
      simt::launch<conv_relu_pool_resident_dgrad_kernel<T, 32>>(stream, config, shape, dz, w, dx);
    else
      simt::launch<conv_relu_pool_resident_dgrad_kernel<T, 64>>(stream, config, shape, dz, w, dx);
  });
}

}  // namespace resident
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
