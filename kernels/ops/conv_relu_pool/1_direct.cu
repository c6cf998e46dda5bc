// SPDX-License-Identifier: Apache-2.0
// Idea: what the three operations do one after the other, in one thread: all sums of a window, their maximum, its code.
//   The backward pass follows the codes: a gradient flows to one element of its window.
// Mapping: a thread per element of the result, of dx, of dw, of db; of y per two channels, whose codes share a byte.
// Traffic and bound: inputs and weights come from the caches, but for the first time; bound by their bandwidth.
// Still slow because: nothing is shared between threads; neighbours in dx and dw look at the same codes again. Tiles in
//   shared memory and tensor cores want the sums as matrix products (kernels/ops/conv2d, the variants after this one).

#include "kernels/lib/element.h"
#include "kernels/ops/conv_relu_pool/mma.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// An index of a four-dimensional array whose last extent changes fastest, taken apart.
struct Position {
  std::int64_t n, row, col, channel;

  __device__ Position(std::size_t index, std::int64_t rows, std::int64_t cols, std::int64_t channels) {
    auto rest = static_cast<std::int64_t>(index);
    channel = rest % channels;
    rest /= channels;
    col = rest % cols;
    rest /= cols;
    row = rest % rows;
    n = rest / rows;
  }
};

/// z[n, oh, ow, o] without its bias.
template <class T>
__device__ float convolve(const conv2d::Geometry& g, const T* x, const T* filter, std::int64_t n, std::int64_t oh,
                          std::int64_t ow) {
  float sum = 0;
  for (std::int64_t kh = 0; kh < g.kernel_height; ++kh)
    for (std::int64_t kw = 0; kw < g.kernel_width; ++kw) {
      const std::int64_t ih = oh * g.stride + kh - g.padding;
      const std::int64_t iw = ow * g.stride + kw - g.padding;
      if (ih < 0 || ih >= g.in_height || iw < 0 || iw >= g.in_width) continue;
      const T* inputs = x + ((n * g.in_height + ih) * g.in_width + iw) * g.in_channels;
      const T* weights = filter + (kh * g.kernel_width + kw) * g.in_channels;
      for (std::int64_t i = 0; i < g.in_channels; ++i) sum += lib::to_f32(inputs[i]) * lib::to_f32(weights[i]);
    }
  return sum;
}

/// y and the code of one output.
template <class T>
__device__ unsigned pool(const Geometry& g, const T* x, const T* filter, float bias, const Position& window, T& y) {
  float best = 0;
  std::int64_t code = 0;
  for (std::int64_t index = 0; index < g.window * g.window; ++index) {
    const std::int64_t oh = window.row * g.window + index / g.window;
    const std::int64_t ow = window.col * g.window + index % g.window;
    const float z = convolve(g.conv, x, filter, window.n, oh, ow) + bias;
    const bool takes = index == 0 || z > best || z != z;  // a NaN takes all, and no number takes it back
    best = takes ? z : best;
    code = takes ? index : code;
  }
  const bool cut_off = best <= 0;
  y = lib::from_f32<T>(cut_off ? 0.0f : best);
  return cut_off ? kCutOff : static_cast<unsigned>(code);
}

template <class T>
__global__ void conv_relu_pool_forward_direct_kernel(SIMT_GRID_CONST(Geometry) g, const T* __restrict__ x,
                                                     const T* __restrict__ w, const T* __restrict__ b,
                                                     T* __restrict__ y, std::uint8_t* __restrict__ codes) {
  const std::int64_t pairs = g.code_bytes_of_position();
  for (std::size_t pair : simt::grid_range(static_cast<std::size_t>(g.code_bytes()))) {
    const Position at(pair, g.out_height(), g.out_width(), pairs);
    const std::int64_t first = 2 * at.channel;
    T* const outputs = y + static_cast<std::int64_t>(pair) / pairs * g.conv.out_channels;
    unsigned code[2] = {kCutOff, kCutOff};
    for (std::int64_t o = first; o < first + 2 && o < g.conv.out_channels; ++o)
      code[o - first] = pool(g, x, w + o * g.conv.whole_filter_elements(), lib::to_f32(b[o]), at, outputs[o]);
    codes[pair] = packed_codes(code[0], code[1]);
  }
}

/// One axis: which window, and which index in it, uses input `at` by kernel element `k`; window -1 if none does.
struct Use {
  std::int64_t window = -1;
  std::int64_t index = 0;

  __device__ Use(std::int64_t at, std::int64_t k, std::int64_t stride, std::int64_t size, std::int64_t windows) {
    const std::int64_t out = (at - k) / stride;
    if (at < k || out * stride != at - k || out >= size * windows) return;
    window = out / size;
    index = out - window * size;
  }
};

template <class T>
__global__ void conv_relu_pool_dgrad_direct_kernel(SIMT_GRID_CONST(Geometry) g, const T* __restrict__ dy,
                                                   const std::uint8_t* __restrict__ codes, const T* __restrict__ w,
                                                   T* __restrict__ dx) {
  const conv2d::Geometry& conv = g.conv;
  for (std::size_t in : simt::grid_range(static_cast<std::size_t>(conv.in_elements()))) {
    const Position at(in, conv.in_height, conv.in_width, conv.in_channels);
    float sum = 0;
    for (std::int64_t kh = 0; kh < conv.kernel_height; ++kh)
      for (std::int64_t kw = 0; kw < conv.kernel_width; ++kw) {
        const Use down(at.row + conv.padding, kh, conv.stride, g.window, g.out_height());
        const Use across(at.col + conv.padding, kw, conv.stride, g.window, g.out_width());
        if (down.window < 0 || across.window < 0) continue;
        const std::int64_t index = down.index * g.window + across.index;
        const std::int64_t cell = (at.n * g.out_height() + down.window) * g.out_width() + across.window;
        const std::int64_t out = cell * conv.out_channels;
        const std::uint8_t* cell_codes = codes + cell * g.code_bytes_of_position();
        const T* weights = w + (kh * conv.kernel_width + kw) * conv.in_channels + at.channel;
        for (std::int64_t o = 0; o < conv.out_channels; ++o)
          if (code_at(cell_codes, o) == index)
            sum += lib::to_f32(dy[out + o]) * lib::to_f32(weights[o * conv.whole_filter_elements()]);
      }
    dx[in] = lib::from_f32<T>(sum);
  }
}

template <class T>
__global__ void conv_relu_pool_wgrad_direct_kernel(SIMT_GRID_CONST(Geometry) g, const T* __restrict__ x,
                                                   const T* __restrict__ dy, const std::uint8_t* __restrict__ codes,
                                                   float* __restrict__ dw, bool accumulate) {
  const conv2d::Geometry& conv = g.conv;
  for (std::size_t weight : simt::grid_range(static_cast<std::size_t>(conv.weight_elements()))) {
    const Position at(weight, conv.kernel_height, conv.kernel_width, conv.in_channels);  // n: the output channel
    float sum = accumulate ? dw[weight] : 0.0f;
    for (std::int64_t cell = 0; cell < g.out_positions(); ++cell) {
      const std::int64_t out = cell * conv.out_channels + at.n;
      const unsigned code = code_at(codes + cell * g.code_bytes_of_position(), at.n);
      if (code == kCutOff) continue;
      const Position window(static_cast<std::size_t>(cell), g.out_height(), g.out_width(), 1);
      const std::int64_t oh = window.row * g.window + code / g.window;
      const std::int64_t ow = window.col * g.window + code % g.window;
      const std::int64_t ih = oh * conv.stride + at.row - conv.padding;
      const std::int64_t iw = ow * conv.stride + at.col - conv.padding;
      if (ih < 0 || ih >= conv.in_height || iw < 0 || iw >= conv.in_width) continue;
      const std::int64_t in = ((window.n * conv.in_height + ih) * conv.in_width + iw) * conv.in_channels + at.channel;
      sum += lib::to_f32(dy[out]) * lib::to_f32(x[in]);
    }
    dw[weight] = sum;
  }
}

template <class T>
__global__ void conv_relu_pool_bias_grad_direct_kernel(SIMT_GRID_CONST(Geometry) g, const T* __restrict__ dy,
                                                       const std::uint8_t* __restrict__ codes, float* __restrict__ db,
                                                       bool accumulate) {
  for (std::size_t channel : simt::grid_range(static_cast<std::size_t>(g.conv.out_channels))) {
    const auto o = static_cast<std::int64_t>(channel);
    float sum = accumulate ? db[o] : 0.0f;
    for (std::int64_t cell = 0; cell < g.out_positions(); ++cell)
      if (code_at(codes + cell * g.code_bytes_of_position(), o) != kCutOff)
        sum += lib::to_f32(dy[cell * g.conv.out_channels + o]);
    db[o] = sum;
  }
}

simt::Config grid_of(Stream& stream, std::int64_t elements) {
  // Each element is hundreds of products: worth a thread of its own.
  return simt::grid_for(stream, static_cast<std::size_t>(elements) * 256);
}

void forward(Stream& stream, const ForwardArgs& args) {
  check_args(args);
  check_x_dtype(args.dtype, args.x_dtype);
  const Geometry& g = args.geometry;
  if (g.out_elements() == 0) return;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<conv_relu_pool_forward_direct_kernel<T>>(
        stream, grid_of(stream, g.code_bytes()), g, static_cast<const T*>(args.x), static_cast<const T*>(args.w),
        static_cast<const T*>(args.b), static_cast<T*>(args.y), args.codes);
  });
}

void backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  check_x_dtype(args.dtype, args.x_dtype);
  const Geometry& g = args.geometry;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    const auto* x = static_cast<const T*>(args.x);
    const auto* dy = static_cast<const T*>(args.dy);
    simt::launch_flat<conv_relu_pool_wgrad_direct_kernel<T>>(stream, grid_of(stream, g.conv.weight_elements()), g, x,
                                                             dy, args.codes, args.dw, args.accumulate);
    simt::launch_flat<conv_relu_pool_bias_grad_direct_kernel<T>>(stream, grid_of(stream, g.conv.out_channels), g, dy,
                                                                 args.codes, args.db, args.accumulate);
  });
  if (args.dx) direct_dgrad(stream, args);
}

std::size_t no_workspace(const Geometry&) { return 0; }

}  // namespace

void direct_dgrad(Stream& stream, const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<conv_relu_pool_dgrad_direct_kernel<T>>(stream, grid_of(stream, g.conv.in_elements()), g,
                                                             static_cast<const T*>(args.dy), args.codes,
                                                             static_cast<const T*>(args.w), static_cast<T*>(args.dx));
  });
}

Variant direct() { return {"direct", forward, backward, no_workspace, lib::supports_floating, lib::is_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
