// SPDX-License-Identifier: Apache-2.0
// Idea: the convolution as a matrix product on tensor cores (kernels/ops/conv2d), its rows in such an order that all
//   elements of a window are accumulators of one thread: bias, maximum, ReLU and code are computed there, and the
//   convolution's output is never stored, nor computed where pooling leaves it out.
// Mapping: each block of 4 warps computes 32 windows and 64 (or 32) filters. Of a warp's 32 rows a thread has rows r, r
//   + 8, r + 16 and r + 24: so row 8 q + r of a warp is element q of window r. A window of more than 4 elements takes
//   several products, and the maximum continues over them.
// Traffic and bound: x is read kernel_height * kernel_width times, mostly from the L1 cache, w once a block; y and half
//   a byte of code an output are written. Bound by the tensor cores for many inputs; with one input channel, by index
//   arithmetic.
// Gains over the steps before: tensor cores; a weight that is loaded serves 128 positions, an input 64 filters.
// Still slow because: neighbouring positions load their common inputs again; w is loaded again for each block. What
//   fits shared memory, and filters of few weights, have kernels of their own (3_resident_*, 3_short_filters_*).
// Limits: f16 and bf16; 2^31 positions and 2 million filters. An infinity in w times the padding's zeros is NaN.

#include "kernels/ops/conv2d/mma_product.cuh"
#include "kernels/ops/conv_relu_pool/mma.h"
#include "kernels/ops/conv_relu_pool/resident.cuh"
#include "kernels/ops/conv_relu_pool/short_filters.h"
#include "kernels/ops/conv_relu_pool/window_maxima.cuh"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace {

using conv2d::Wide;
using Narrow = conv2d::MmaTile<4, 32, 16>;  // few filters, of short K

/// For how many blocks a multiprocessor must have registers; 0: ptxas decides. By itself it takes so few for the narrow
/// tile on sm_90 that it spills; with 4 for the wide one, which are enough for it on sm_90, it would spill on sm_80.
template <class Tile>
constexpr int kResidentBlocks = Tile::kColumns > Narrow::kColumns ? 0 : 4;

/// The wide tile is for windows of at most 4 elements: maxima that live on would take the registers of another block.
template <class Tile>
constexpr bool kIsOneProduct = Tile::kColumns > Narrow::kColumns;

/// The outputs of the convolution that pooling uses, counted window by window.
class Windows {
 public:
  explicit Windows(const Geometry& g)
      : height_(static_cast<int>(g.out_height())),
        width_(static_cast<int>(g.out_width())),
        size_(static_cast<int>(g.window)),
        elements_(static_cast<int>(g.window * g.window)),
        count_(lib::narrow<int>("conv_relu_pool", "positions", g.conv.batch * g.out_height() * g.out_width())) {
    lib::narrow<int>("conv_relu_pool", "positions before pooling", std::int64_t{count_} * elements_.value());
  }

  /// Of an element in the convolution's output.
  struct Position {
    int image, y, x;
  };
  /// The same as a window and a row-major index within it.
  struct WindowElement {
    int window, index;
  };

  __device__ int count() const { return count_; }
  __device__ int elements_of_window() const { return elements_.value(); }
  __device__ Position position(const WindowElement& element) const {
    const auto [line, across] = width_.divide(element.window);
    const auto [image, down] = height_.divide(line);
    const auto [row, column] = size_.divide(element.index);
    return {image, down * size_.value() + row, across * size_.value() + column};
  }

 private:
  conv2d::Divisor height_, width_, size_, elements_;
  int count_;
};

/// The rows and columns of the convolution's output that fill windows.
inline conv2d::Patches::Outputs pooled_outputs(const Geometry& g) {
  return {g.out_height() * g.window, g.out_width() * g.window};
}

/// Patches with 32 rows for four elements of eight windows, from `first_element` on.
template <class T>
struct WindowPatches : conv2d::PatchMatrix<T, conv2d::Major::k> {
  Windows windows;
  int first_element = 0;

  __device__ typename conv2d::PatchMatrix<T, conv2d::Major::k>::Row row(int index) const {
    const int window = index / kWarpRows * kWarpWindows + index % kWarpWindows;
    const int element = first_element + index / kWarpWindows % kWarpElements;
    if (window >= windows.count() || element >= windows.elements_of_window())
      return this->row_of(conv2d::Patches::no_row());
    const Windows::Position at = windows.position({window, element});
    return this->row_of(this->patches.row_at(at.image, at.y, at.x));
  }
};

template <class Tile, class T, class P>
__global__ void __launch_bounds__(Tile::kThreads, kResidentBlocks<Tile>)
    conv_relu_pool_forward_mma_kernel(SIMT_GRID_CONST(P) product, const T* __restrict__ b, T* __restrict__ y,
                                      std::uint8_t* __restrict__ codes) {
  constexpr int kTiles = Tile::kColumns / 8;
  const int first_row = static_cast<int>(blockIdx.x) * Tile::kRows;
  const int first_column = static_cast<int>(blockIdx.y) * Tile::kColumns;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int window = (first_row / kWarpRows + static_cast<int>(threadIdx.x) / 32) * kWarpWindows + lane / 4;
  const int channel = first_column + simt::mma_position_in_c(lane, 0).column;
  typename WindowMaxima<kTiles>::Bias bias;
  WindowMaxima<kTiles>::load(bias, b, channel, product.columns);
  WindowMaxima<kTiles> maxima;
  auto a = product.a;
  do {
    typename Tile::Accumulators products;
    conv2d::add_mma_product<Tile>(products, a, product.b, first_row, first_column, 0, product.k);
    maxima.take(products.sums, a.first_element, a.windows.elements_of_window(), bias);
    a.first_element += kWarpElements;
  } while (!kIsOneProduct<Tile> && a.first_element < a.windows.elements_of_window());
  if (window < a.windows.count()) maxima.store(y, codes, window, channel, product.columns);
}

template <class Tile, class T, class P>
void launch(Stream& stream, const P& product, const ForwardArgs& args) {
  const simt::Config config{.grid = conv2d::grid_of(product.rows, product.columns, Tile::kShape, 1),
                            .block = dim3(Tile::kThreads)};
  simt::launch<conv_relu_pool_forward_mma_kernel<Tile, T, P>>(stream, config, product, static_cast<const T*>(args.b),
                                                              static_cast<T*>(args.y), args.codes);
}

void forward(Stream& stream, const ForwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.out_elements() == 0 || short_filters::forward(stream, args)) return;
  check_x_dtype(args.dtype, args.x_dtype);
  if (resident::forward(stream, args)) return;
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    const auto* x = static_cast<const T*>(args.x);
    const auto* w = static_cast<const T*>(args.w);
    const WindowPatches<T> a{
        {conv2d::Patches::of_outputs(g.conv, pooled_outputs(g)), x, conv2d::has_aligned_rows(x, g.conv.in_channels)},
        Windows(g)};
    const int filters = lib::narrow<int>("conv_relu_pool", "out_channels", g.conv.out_channels);
    const int k = a.patches.columns();
    const std::int64_t rows = lib::ceil_div(g.out_elements() / filters, kWarpWindows) * kWarpRows;
    const conv2d::Product product{
        a, conv2d::StoredMatrix<T, conv2d::Major::k>{w, filters, k, conv2d::has_aligned_rows(w, k)},
        lib::narrow<int>("conv_relu_pool", "rows", rows), filters, k};
    if (filters > Narrow::kColumns && g.window * g.window <= kWarpElements)
      launch<Wide, T>(stream, product, args);
    else
      launch<Narrow, T>(stream, product, args);
  });
}

bool reads(const Geometry& g, DType dtype, DType x_dtype) {
  return short_filters::knows(g) && lib::is_half(dtype) && (x_dtype == dtype || x_dtype == DType::f32);
}

void backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  mma::backward(stream, args, conv2d::mma());
}

std::size_t workspace_bytes(const Geometry& g) { return mma::workspace_bytes(g, conv2d::mma()); }

}  // namespace

Variant mma_tiles() {
  return {.name = "mma",
          .forward = forward,
          .backward = backward,
          .workspace_bytes = workspace_bytes,
          .supports = lib::supports_cuda_half,
          .computes = lib::is_half,
          .reads = reads};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
