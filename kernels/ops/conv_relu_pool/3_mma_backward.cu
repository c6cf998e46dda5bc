// SPDX-License-Identifier: Apache-2.0
// Idea: dz, the gradient of the convolution's output, is written once, zeros and all; then the gradients are those of
//   conv2d, whose copies of operands run ahead of the products. Tensor cores multiply the zeros faster than anybody
//   could look for the rest.
// Mapping: each block has some of the windows, and up to 32 vectors of 8 channels: neighbouring threads have
//   neighbouring vectors, then the next windows. A thread writes all elements of a window, and adds up dy; then the
//   block adds up its threads, for db.
// Traffic and bound: dy and codes are read once, dz is written once, window^2 times as much; bound by memory. Then
//   those of conv2d's dgrad and wgrad.
// Gains over the steps before: tensor cores; no thread walks through all outputs.
// Still slow because: dz is in memory. What fits shared memory, and filters of few weights, have kernels of their own
//   (3_resident_*, 3_short_filters_*).
// Limits: f16 and bf16; those of conv2d. An infinity in dy, x or w times a zero is NaN.

#include <algorithm>

#include "kernels/lib/split_k.h"
#include "kernels/ops/conv_relu_pool/mma.h"
#include "kernels/ops/conv_relu_pool/pooled_gradient.cuh"
#include "kernels/ops/conv_relu_pool/resident.cuh"
#include "kernels/ops/conv_relu_pool/short_filters.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kThreads = 256;
constexpr int kMostVectors = 32;            // of a position that a block has
constexpr std::int64_t kMostBlocks = 264;   // two for each multiprocessor of a large GPU
constexpr std::int64_t kCellsOfThread = 2;  // at least

/// The convolution's outputs as cells: windows, and at the end of a row and of an image also what fills none.
struct Cells {
  int window, count;
  int out_height, out_width, windows_down, windows_across;
  conv2d::Divisor height, width;  // of an image, in cells

  explicit Cells(const Geometry& g)
      : window(static_cast<int>(g.window)),
        count(checked_count(g)),
        out_height(static_cast<int>(g.conv.out_height())),
        out_width(static_cast<int>(g.conv.out_width())),
        windows_down(static_cast<int>(g.out_height())),
        windows_across(static_cast<int>(g.out_width())),
        height(static_cast<int>(extent(g, out_height))),
        width(static_cast<int>(extent(g, out_width))) {}

 private:
  /// With room for those of a block beyond the last.
  static int checked_count(const Geometry& g) {
    const std::int64_t cells = g.conv.batch * extent(g, g.conv.out_height()) * extent(g, g.conv.out_width());
    lib::check_limit("conv_relu_pool", "positions", cells, std::int64_t{1} << 30);
    return static_cast<int>(cells);
  }
  static std::int64_t extent(const Geometry& g, std::int64_t outputs) { return lib::ceil_div(outputs, g.window); }
};

/// How a block's threads share the channels from the block's first on.
struct Layout {
  int vectors;  ///< of a position
  int cells;    ///< at a time; threads that are left over have none

  Layout(std::int64_t channels, int width)
      : vectors(static_cast<int>(std::min<std::int64_t>(lib::ceil_div(channels, width), kMostVectors))),
        cells(kThreads / vectors) {}

  /// That the cells are divided among.
  std::int64_t blocks(std::int64_t all_cells) const {
    return std::clamp<std::int64_t>(all_cells / (cells * kCellsOfThread), 1, kMostBlocks);
  }
};

/// dy of neighbouring channels of a window, and what of it flows to each element: of eight channels and 2 x 2 elements.
template <class T, int kWidth>
struct WindowGradient {
  static constexpr int kWindow = 2;

  const typename PooledGradient<T>::Vector vector;
  const ElementsOfTwoByTwo elements;

  __device__ WindowGradient(const PooledGradient<T>& from, int window, int channel)
      : vector(from.fetch(window, channel)), elements(vector.codes) {}
  __device__ void store(T* to, int element) const {
    simt::store_as(to, kept_elements(vector.dy, elements.names[element]));
  }
  __device__ static void clear(T* to) { simt::store_as(to, uint4{}); }
  __device__ void add_to(float (&sums)[kWidth]) const {
    T kept[kWidth];
    simt::store_as(kept, kept_elements(vector.dy, ~vector.codes >> 3));  // kCutOff has the highest bit
    SIMT_UNROLL
    for (int c = 0; c < kWidth; ++c) sums[c] += lib::to_f32(kept[c]);
  }
};

/// Of one channel, and any window.
template <class T>
struct WindowGradient<T, 1> {
  static constexpr int kWindow = 0;

  const T dy;
  const unsigned code;

  __device__ WindowGradient(const PooledGradient<T>& from, int window, int channel)
      : dy(from.dy[std::int64_t{window} * from.channels + channel]), code(code_at(from.codes_of(window), channel)) {}
  __device__ void store(T* to, int element) const {
    *to = code == static_cast<unsigned>(element) ? dy : lib::from_f32<T>(0.0f);
  }
  __device__ static void clear(T* to) { *to = lib::from_f32<T>(0.0f); }
  __device__ void add_to(float (&sums)[1]) const {
    if (code != kCutOff) sums[0] += lib::to_f32(dy);
  }
};

template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    conv_relu_pool_unpool_kernel(SIMT_GRID_CONST(Cells) s, SIMT_GRID_CONST(PooledGradient<T>) from,
                                 SIMT_GRID_CONST(Layout) layout, int cells_of_block, T* __restrict__ dz,
                                 float* __restrict__ db_slices) {
  using Gradient = WindowGradient<T, kWidth>;
  constexpr int kPitch = kThreads + (kWidth > 1 ? 32 / kWidth : 0);  // a warp adds up 32 channels in 32 banks
  using Table = float[kWidth][kPitch];
  SIMT_SHARED(Table, table);
  const int window = Gradient::kWindow ? Gradient::kWindow : s.window;
  const int thread = static_cast<int>(threadIdx.x);
  const int first_channel = static_cast<int>(blockIdx.y) * layout.vectors * kWidth;
  const int channel = first_channel + thread % layout.vectors * kWidth;
  const int begin = static_cast<int>(blockIdx.x) * cells_of_block;
  const int end = s.count - begin < cells_of_block ? s.count : begin + cells_of_block;
  const bool works = thread / layout.vectors < layout.cells && channel < from.channels;
  float sums[kWidth] = {};
  for (int cell = works ? begin + thread / layout.vectors : end; cell < end; cell += layout.cells) {
    const auto [line, across] = s.width.divide(cell);
    const auto [image, down] = s.height.divide(line);
    const std::int64_t row = std::int64_t{image} * s.out_height + down * window;
    T* const to = dz + (row * s.out_width + across * window) * from.channels + channel;
    const auto for_each_element = [&](auto visit) {  // visit(element, its row and column)
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < window; ++i) {
        SIMT_UNROLL_ON_GPU
        for (int j = 0; j < window; ++j) visit(to + std::int64_t{i * s.out_width + j} * from.channels, i, j);
      }
    };
    if (down < s.windows_down && across < s.windows_across) {
      const Gradient gradient(from, (image * s.windows_down + down) * s.windows_across + across, channel);
      for_each_element([&](T* element, int i, int j) { gradient.store(element, i * window + j); });
      gradient.add_to(sums);
    } else {
      for_each_element([&](T* element, int i, int j) {
        if (down * window + i < s.out_height && across * window + j < s.out_width) Gradient::clear(element);
      });
    }
  }
  SIMT_UNROLL
  for (int c = 0; c < kWidth; ++c) table[c][thread] = sums[c];
  __syncthreads();  // a channel's sum is over what many threads wrote
  for (int at = thread; at < layout.vectors * kWidth; at += kThreads) {
    if (first_channel + at >= from.channels) continue;
    float sum = 0;
    for (int i = 0; i < layout.cells; ++i) sum += table[at % kWidth][i * layout.vectors + at / kWidth];
    db_slices[std::int64_t{blockIdx.x} * from.channels + first_channel + at] = sum;
  }
}

/// Writes dz, and leaves db in as many slices as it returns.
template <class T, int kWidth>
int unpool(Stream& stream, const BackwardArgs& args, const PooledGradient<T>& from, T* dz, float* db_slices) {
  const Cells cells(args.geometry);
  const Layout layout(from.channels, kWidth);
  const std::int64_t cells_of_block = std::max<std::int64_t>(1, lib::ceil_div(cells.count, layout.blocks(cells.count)));
  const std::int64_t blocks = std::max<std::int64_t>(1, lib::ceil_div(cells.count, cells_of_block));
  const std::int64_t chunks = lib::ceil_div(from.channels, std::int64_t{layout.vectors} * kWidth);
  lib::check_limit("conv_relu_pool", "channels", from.channels, 65535LL * layout.vectors * kWidth);
  const simt::Config config{.grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(chunks)),
                            .block = dim3(kThreads)};
  simt::launch<conv_relu_pool_unpool_kernel<T, kWidth>>(stream, config, cells, from, layout,
                                                        static_cast<int>(cells_of_block), dz, db_slices);
  return static_cast<int>(blocks);
}

std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Slices of dw, then of db.
struct Slices {
  std::size_t db, bytes;

  Slices(const Geometry& g, const conv2d::Variant& conv2d)
      : db(rounded(conv2d.workspace_bytes(g.conv))),
        bytes(db + static_cast<std::size_t>(kMostBlocks * g.conv.out_channels) * sizeof(float)) {}
};

/// By way of dz in memory: dw and db, and dx unless it is null.
template <class T>
void backward_of_dz(Stream& stream, const BackwardArgs& args, const conv2d::Variant& conv2d) {
  const Geometry& g = args.geometry;
  T* dz = nullptr;
  if (g.conv.out_channels > 0) {
    lib::check_pointer("conv_relu_pool backward", "workspace", args.workspace);
    dz = reinterpret_cast<T*>(static_cast<std::byte*>(args.workspace) + mma::partial_sum_bytes(g, conv2d));
    auto* const slices = static_cast<std::byte*>(args.slices());
    float* const db_slices = reinterpret_cast<float*>(slices + Slices(g, conv2d).db);
    const auto from = pooled_gradient<T>(args);
    const bool in_vectors = from.aligned && g.window == WindowGradient<T, lib::kVectorElements>::kWindow;
    const int count = in_vectors ? unpool<T, lib::kVectorElements>(stream, args, from, dz, db_slices)
                                 : unpool<T, 1>(stream, args, from, dz, db_slices);
    lib::sum_slices(stream, db_slices, count, g.conv.out_channels, args.db, args.accumulate, args.partial_sums);
    conv2d.wgrad(beside(stream, args.branch), {.geometry = g.conv,
                                               .dtype = args.dtype,
                                               .x = args.x,
                                               .dy = dz,
                                               .dw = args.dw,
                                               .accumulate = args.accumulate,
                                               .workspace = slices,
                                               .partial_sums = args.partial_sums});
  }
  if (args.dx) conv2d.dgrad(stream, {.geometry = g.conv, .dtype = args.dtype, .dy = dz, .w = args.w, .dx = args.dx});
}

}  // namespace

namespace mma {

void backward(Stream& stream, const BackwardArgs& args, const conv2d::Variant& conv2d) {
  if (short_filters::wgrad(stream, args)) {
    if (args.dx) direct_dgrad(stream, args);
    return;
  }
  check_x_dtype(args.dtype, args.x_dtype);
  const auto by_way_of_dz = [&](Stream& on, const BackwardArgs& all) {
    lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) { backward_of_dz<T>(on, all, conv2d); });
  };
  // Before dx is enqueued, which dw must not wait for; a later fork takes its place.
  Stream& beside_dx = beside(stream, args.branch);
  if (args.dx && !resident::dgrad(stream, args)) return by_way_of_dz(stream, args);
  BackwardArgs rest = args;
  rest.dx = nullptr;
  rest.branch = nullptr;
  if (!resident::wgrad(beside_dx, rest)) by_way_of_dz(beside_dx, rest);
}

std::size_t partial_sum_bytes(const Geometry& g, const conv2d::Variant& conv2d) {
  if (short_filters::knows(g)) return short_filters::wgrad_workspace_bytes(g);
  return rounded(std::max(Slices(g, conv2d).bytes, resident::wgrad_workspace_bytes(g)));
}

std::size_t workspace_bytes(const Geometry& g, const conv2d::Variant& conv2d) {
  const std::size_t dz = short_filters::knows(g) ? 0 : lib::bytes_of(g.conv.out_elements(), DType::f16);
  return partial_sum_bytes(g, conv2d) + dz;
}

}  // namespace mma

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
