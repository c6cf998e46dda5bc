// SPDX-License-Identifier: Apache-2.0
// Idea: the convolution as a matrix product on tensor cores (kernels/ops/conv2d), its rows in such an order that a
//   block has all elements of its windows: bias, ReLU, maximum and code are computed there, and the convolution's
//   output is never stored, nor computed where pooling leaves it out.
// Mapping: as in conv2d's 4_mma.cu, with rows in the order of windows (gathered.cuh). Sums go through shared memory,
//   rounded; then each thread pools eight filters of a window, two at a time.
// Traffic and bound: x is read kernel_height * kernel_width times, from the L2 cache, w once a block; y and half a byte
//   of code an output are written. Bound by the wavefronts of ldmatrix.
// Gains over the steps before: tensor cores; a weight that is loaded serves 128 positions, an input 64 filters.
// Still slow because: neighbouring positions load their common inputs again. What fits shared memory, and filters of
//   few weights, have kernels of their own (3_resident_*, 3_short_filters_*).
// Limits: f16 and bf16; channels in multiples of 8; windows of 2 x 2; kernels of at most 15 x 15. Else conv2d writes
//   its output to the workspace, and a second kernel pools it. An infinity in w times the padding's zeros is NaN.

#include "kernels/ops/conv2d/gathered_mma_tile.cuh"
#include "kernels/ops/conv_relu_pool/gathered.cuh"
#include "kernels/ops/conv_relu_pool/mma.h"
#include "kernels/ops/conv_relu_pool/resident.cuh"
#include "kernels/ops/conv_relu_pool/short_filters.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace {

template <class Tile, class T>
__global__ void __launch_bounds__(Tile::kThreads)
    conv_relu_pool_gathered_mma_kernel(SIMT_GRID_CONST(PooledProduct<T>) product, const T* b, T* y,
                                       std::uint8_t* codes) {
  pool_tile<Tile>(product, b, y, codes);
}

bool gathered_forward(Stream& stream, const ForwardArgs& args) {
  return run_gathered<conv2d::GatheredMmaTile>(
      args, [&]<class Tile, class T>(lib::Element<Tile>, const simt::Config& config, const PooledProduct<T>& product) {
        simt::launch<conv_relu_pool_gathered_mma_kernel<Tile, T>>(
            stream, config, product, static_cast<const T*>(args.b), static_cast<T*>(args.y), args.codes);
      });
}

/// The convolution's output, z, and how it is pooled.
struct Pooling {
  conv2d::Divisor pairs, width, height;  // of y: of channels, whose codes share a byte
  int window, channels;
  std::int64_t line, image;  // of z, in elements

  explicit Pooling(const Geometry& g)
      : pairs(static_cast<int>(g.code_bytes_of_position())),
        width(static_cast<int>(g.out_width())),
        height(static_cast<int>(g.out_height())),
        window(static_cast<int>(g.window)),
        channels(static_cast<int>(g.conv.out_channels)),
        line(g.conv.out_width() * g.conv.out_channels),
        image(g.conv.out_height() * line) {}
};

/// A thread for each byte of codes; z is not negative.
template <class T>
__global__ void conv_relu_pool_maxima_kernel(SIMT_GRID_CONST(Pooling) s, const T* __restrict__ z, T* __restrict__ y,
                                             std::uint8_t* __restrict__ codes, std::size_t code_bytes) {
  for (std::size_t byte : simt::grid_range(code_bytes)) {
    const auto [position, pair] = s.pairs.divide(static_cast<int>(byte));
    const auto [row, across] = s.width.divide(position);
    const auto [image, down] = s.height.divide(row);
    const T* const first = z + image * s.image + down * s.window * s.line + across * s.window * s.channels;
    unsigned code[2] = {kCutOff, kCutOff};
    for (int channel = 2 * pair; channel < 2 * pair + 2 && channel < s.channels; ++channel) {
      float best = 0;
      for (int i = 0; i < s.window; ++i)
        for (int j = 0; j < s.window; ++j) {
          const float value = lib::to_f32(first[i * s.line + j * s.channels + channel]);
          if (!(value > best || value != value)) continue;  // a NaN takes all, and no number takes it back
          best = value;
          code[channel % 2] = static_cast<unsigned>(i * s.window + j);
        }
      y[std::int64_t{position} * s.channels + channel] = lib::from_f32<T>(best);
    }
    codes[byte] = packed_codes(code[0], code[1]);
  }
}

void forward(Stream& stream, const ForwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.out_elements() == 0 || short_filters::forward(stream, args)) return;
  check_x_dtype(args.dtype, args.x_dtype);
  if (!resident::forward(stream, args) && !gathered_forward(stream, args))
    mma::unfused_forward(stream, args, conv2d::mma());
}

bool reads(const Geometry& g, DType dtype, DType x_dtype) {
  return short_filters::knows(g) && lib::is_half(dtype) && (x_dtype == dtype || x_dtype == DType::f32);
}

void backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  mma::backward(stream, args, conv2d::mma());
}

std::size_t workspace_bytes(const Geometry& g) { return mma::workspace_bytes(g, conv2d::mma()); }
std::size_t partial_sum_bytes(const Geometry& g) { return mma::partial_sum_bytes(g, conv2d::mma()); }

}  // namespace

namespace mma {

void unfused_forward(Stream& stream, const ForwardArgs& args, const conv2d::Variant& conv2d) {
  lib::check_pointer("conv_relu_pool forward", "workspace", args.workspace);
  const Geometry& g = args.geometry;
  lib::narrow<int>("conv_relu_pool", "outputs", g.code_bytes());
  conv2d.forward(stream, {.geometry = g.conv,
                          .dtype = args.dtype,
                          .x = args.x,
                          .w = args.w,
                          .y = args.workspace,
                          .bias = args.b,
                          .relu = true});
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<conv_relu_pool_maxima_kernel<T>>(
        stream, simt::grid_for(stream, static_cast<std::size_t>(g.conv.out_elements())), Pooling(g),
        static_cast<const T*>(args.workspace), static_cast<T*>(args.y), args.codes,
        static_cast<std::size_t>(g.code_bytes()));
  });
}

}  // namespace mma

Variant mma_tiles() {
  return {.name = "mma",
          .forward = forward,
          .backward = backward,
          .workspace_bytes = workspace_bytes,
          .supports = lib::supports_cuda_half,
          .computes = lib::is_half,
          .reads = reads,
          .partial_sum_bytes = partial_sum_bytes};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
