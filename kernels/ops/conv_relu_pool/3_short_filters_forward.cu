// SPDX-License-Identifier: Apache-2.0
// Idea: filters with few weights (a first convolution) as a small matrix product: a row is the inputs under a whole
//   2 x 2 window, loaded as pairs straight into the registers of tensor cores; a column is an element of the window and
//   a filter, whose weights are where that element sees them, and 0 elsewhere. For 3 x 3 weights K is 16: as much as
//   tensor cores multiply at once, of which 9 are not 0. The bias is what the product is added to.
//     z[window, (element, filter)] = sum over k of patch[window, k] * weights[k, (element, filter)]
// Mapping: a warp multiplies 16 windows by 32 filters: a thread gets all elements of two windows and eight filters,
//   two filters a register. So maximum and code are taken two at a time, the eight outputs of a window are one 16-byte
//   store and its codes one of 4 bytes, and those of a warp are contiguous. A block builds the columns once, in shared
//   memory.
// Traffic and bound: x comes from the L1 cache, where windows overlap; y and half a byte of code an output are
//   written. Bound by memory.
// Gains over the step before: tensor cores, whose operands need no address but that of a window; an instruction of the
//   maximum serves two outputs; whole sectors.
// Still slow because: each block builds the columns again; 7 of 16 products are by 0.
// Limits: filters of with_short_filter; 2 x 2 windows, stride 1; 2^30 windows, 2^31 image elements. An infinity or a
//   NaN times 0 is NaN, and so are bf16 from 2^121 on to the instructions that compare: where a maximum is NaN, the
//   outputs are computed again by plain loops.

#include <algorithm>
#include <cstdint>

#include "kernels/lib/element.h"
#include "kernels/lib/split_k.h"
#include "kernels/lib/tensor_core.h"
#include "kernels/ops/conv2d/short_filters.cuh"
#include "kernels/ops/conv_relu_pool/pair_maxima.cuh"
#include "kernels/ops/conv_relu_pool/short_filters.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace {

using conv2d::StoredImages;
using WindowGrid = conv2d::WindowGrid<2, 2>;

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr std::int64_t kMostBlocks = 528;  // four for each multiprocessor of a large GPU
constexpr int kThreadFilters = 8;          // in pairs: filter i and i + 4, of channel groups i
constexpr int kPairs = kThreadFilters / 2;
constexpr int kFilterGroups = kBlockFilters / 8;
constexpr int kElements = 4;  // of a window

/// The inputs under a window, numbered row by row.
template <class Filter>
struct Patch {
  static constexpr int kSide = Filter::kKernel + 1;
  static constexpr int kRow = kSide * Filter::kInputs;  // even: neighbours are a pair
  static constexpr int kInputs = kSide * kRow;
  static constexpr int kSteps = (kInputs + 15) / 16;  // of K = 16
  static_assert(kRow % 2 == 0);

  /// Where in the image input k is, from the first on. Of those that fill up the last step: the first.
  __device__ static int offset(int k, int row_of_image) { return k < kInputs ? k / kRow * row_of_image + k % kRow : 0; }
};

struct Shape {
  WindowGrid grid;
  int filters, code_bytes;  // a position's
  bool in_pairs;            // no padding, and the inputs 2 k and 2 k + 1 of any patch are one aligned access
  bool aligned;             // eight outputs, and their codes, are one aligned access
};

template <class T>
struct alignas(16) OutputVector {
  T elements[kThreadFilters];
};

/// The filter of a block that column `column` of group `group` is.
__device__ constexpr int filter_of_column(int group, int column) { return column / 2 * 8 + column % 2 * 4 + group; }

/// The columns of the product as fragments, what they are built from, and the biases, in shared memory.
template <class T, class Filter>
struct alignas(16) Columns {
  using P = Patch<Filter>;
  /// A filter's rows as in a patch, with zeros around them. So the weights that an element of the window sees are those
  /// of the first one, a row or a pixel earlier, and no test is needed.
  static constexpr int kRowsAbove = 2;
  static constexpr int kPaddedRows = kRowsAbove + (16 * P::kSteps + P::kRow - 1) / P::kRow;
  static constexpr int kPitch =
      kPaddedRows * P::kRow / 2 + 1;  // in words: the filters of a group are in different banks

  uint4 fragments[kFilterGroups][P::kSteps][kElements / 2][32];  // of two neighbouring elements, two registers each
  float biases[kBlockFilters];
  std::uint32_t padded[kBlockFilters][kPitch];

  __device__ void load(const T* w, const T* b, int filters) {
    for (unsigned i = threadIdx.x; i < kBlockFilters * kPaddedRows; i += kThreads) {
      const int filter = static_cast<int>(i / kPaddedRows), row = static_cast<int>(i % kPaddedRows);
      const bool exists = filter < filters && row >= kRowsAbove && row < kRowsAbove + Filter::kKernel;
      const T* const from = w + (filter * Filter::kKernel + row - kRowsAbove) * Filter::kRow;
      const auto weight = [&](int k) { return exists && k < Filter::kRow ? from[k] : lib::from_f32<T>(0.0f); };
      SIMT_UNROLL_ON_GPU
      for (int k = 0; k < P::kRow; k += 2)
        padded[filter][(row * P::kRow + k) / 2] = lib::pair_of<T>(weight(k), weight(k + 1));
    }
    if (const int i = static_cast<int>(threadIdx.x); i < kBlockFilters)
      biases[i] = i < filters ? lib::to_f32(b[i]) : 0.0f;
  }
  /// Each warp builds the columns of a group.
  __device__ void build() {
    static_assert(kWarps == kFilterGroups);
    const int group = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    const std::uint32_t* const filter = padded[filter_of_column(group, lane / 4)];
    SIMT_UNROLL_ON_GPU
    for (int step = 0; step < P::kSteps; ++step) {
      std::uint32_t registers[kElements][2];
      SIMT_UNROLL_ON_GPU
      for (int half = 0; half < 2; ++half) {
        const int k = 16 * step + simt::mma_position_in_b(lane, 2 * half).row;  // even
        const std::uint32_t* const first = filter + (kRowsAbove * P::kRow + k) / 2;
        SIMT_UNROLL_ON_GPU
        for (int e = 0; e < kElements; ++e) {
          const int earlier = e / 2 * P::kRow + e % 2 * Filter::kInputs;
          const std::uint32_t* const at = first - (earlier + 1) / 2;
          registers[e][half] = earlier % 2 == 0 ? at[0] : lib::permute_bytes<0x5432>(at[0], at[1]);
        }
      }
      SIMT_UNROLL_ON_GPU
      for (int e = 0; e < kElements; e += 2)
        fragments[group][step][e / 2][lane] = {registers[e][0], registers[e][1], registers[e + 1][0],
                                               registers[e + 1][1]};
    }
  }
};

/// An input of a patch that may lie in the padding.
template <class Filter, class Images>
__device__ typename Images::Element padded_element(const Images& images, const typename Images::Element* image,
                                                   const WindowGrid& grid, const WindowGrid::Position& at, int k) {
  using P = Patch<Filter>;
  const int y = at.y + k / P::kRow;
  const int x = at.x + k % P::kRow / Filter::kInputs;
  const bool exists = k < P::kInputs && y >= 0 && y < grid.height && x >= 0 && x < grid.width;
  if (!exists) return static_cast<typename Images::Element>(0.0f);
  return images.element(image + (y * grid.width + x) * Filter::kInputs + k % Filter::kInputs);
}

/// A thread's rows of the product: of windows lane / 4 and lane / 4 + 8 of a tile.
template <class Filter>
struct Rows {
  std::uint32_t registers[Patch<Filter>::kSteps][4];

  /// Where in the image a thread's pairs are, from a window's first input on.
  struct Offsets {
    int of_pair[2 * Patch<Filter>::kSteps];

    __device__ explicit Offsets(const WindowGrid& grid) {
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < 2 * Patch<Filter>::kSteps; ++i)
        of_pair[i] = Patch<Filter>::offset(input(i), grid.width * Filter::kInputs);
    }
    /// The first input of pair i.
    __device__ static int input(int i) { return 8 * i + static_cast<int>(threadIdx.x) % 4 * 2; }
  };

  template <class T, class Images>
  __device__ void load(const Images& images, const Shape& s, const Offsets& offsets, const WindowGrid::Position& at,
                       int which) {
    const auto* const image = images.image(at.image);
    const auto load_pairs = [&](auto pair_at) {
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < 2 * Patch<Filter>::kSteps; ++i) registers[i / 2][i % 2 * 2 + which] = pair_at(i);
    };
    if (s.in_pairs) {
      const auto* const first = image + (at.y * s.grid.width + at.x) * Filter::kInputs;
      load_pairs([&](int i) { return images.pair(first + offsets.of_pair[i]); });
    } else {
      load_pairs([&](int i) {
        const int k = Offsets::input(i);
        return lib::pair_of<T>(padded_element<Filter>(images, image, s.grid, at, k),
                               padded_element<Filter>(images, image, s.grid, at, k + 1));
      });
    }
  }
};

/// Of a window, the maxima of eight filters and their codes.
template <class T>
struct Outputs {
  std::uint32_t maxima[kPairs];  // filter i in the lower half, i + 4 in the upper one
  std::uint32_t codes = 0;       // filter i at bit 4 i

  /// sums[e][i]: of element e and filter `pair` or `pair` + 4.
  __device__ void take(int pair, const float (&sums)[kElements][2]) {
    std::uint32_t z[kElements];
    SIMT_UNROLL_ON_GPU
    for (int e = 0; e < kElements; ++e) z[e] = lib::relu_pair<T>(sums[e][0], sums[e][1]);
    maxima[pair] = maxima_of_pairs(z, codes, 4 * pair);
  }

  __device__ OutputVector<T> vector() const {
    OutputVector<T> outputs;
    std::uint32_t pairs[kPairs];
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kPairs; i += 2) {
      pairs[i / 2] = lib::lower_of_pairs(maxima[i], maxima[i + 1]);
      pairs[2 + i / 2] = lib::upper_of_pairs(maxima[i], maxima[i + 1]);
    }
    simt::store_as(outputs.elements, uint4{pairs[0], pairs[1], pairs[2], pairs[3]});
    return outputs;
  }
};

/// Eight outputs of a window and their codes.
template <class T>
struct Target {
  T* y;
  std::uint8_t* codes;
  int filters;  // that exist, of these eight and those after them

  __device__ Target(const Shape& s, T* all_y, std::uint8_t* all_codes, int window, int filter)
      : y(all_y + std::int64_t{window} * s.filters + filter),
        codes(all_codes + std::int64_t{window} * s.code_bytes + filter / 2),
        filters(s.filters - filter) {}

  __device__ void store(const OutputVector<T>& outputs, std::uint32_t eight_codes, bool aligned) const {
    if (aligned) {
      simt::store_as(y, outputs);
      simt::store_as(codes, eight_codes);
      return;
    }
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kThreadFilters; ++i)
      if (i < filters) y[i] = outputs.elements[i];
    store_codes(eight_codes);
  }
  __device__ void store_codes(std::uint32_t eight_codes) const {
    for (int i = 0; i < kThreadFilters && i < filters; i += 2)
      codes[i / 2] = static_cast<std::uint8_t>(eight_codes >> 4 * i);
  }
};

/// The same by plain loops.
template <class T, class Filter, class Images>
__device__ void compute_again(const Target<T>& target, const Images& images, const Shape& s,
                              const WindowGrid::Position& at, const T* weights, const T* biases) {
  const auto* const image = images.image(at.image);
  const auto sum = [&](const T* filter, float bias, int y, int x) {
    for (int row = y < 0 ? -y : 0; row < Filter::kKernel && y + row < s.grid.height; ++row)
      for (int column = x < 0 ? -x : 0; column < Filter::kKernel && x + column < s.grid.width; ++column)
        for (int c = 0; c < Filter::kInputs; ++c) {
          const auto input = images.element(image + ((y + row) * s.grid.width + x + column) * Filter::kInputs + c);
          bias += lib::to_f32(lib::from_f32<T>(lib::to_f32(input))) *
                  lib::to_f32(filter[row * Filter::kRow + column * Filter::kInputs + c]);
        }
    return bias;
  };
  std::uint32_t eight_codes = ~0u;  // kCutOff for filters that do not exist
  for (int i = 0; i < kThreadFilters && i < target.filters; ++i) {
    float best = 0;
    unsigned code = 0;
    for (int element = 0; element < kElements; ++element) {
      const float z =
          sum(weights + i * Filter::kWeights, lib::to_f32(biases[i]), at.y + element / 2, at.x + element % 2);
      const bool takes = element == 0 || z > best || z != z;  // a NaN takes all, and no number takes it back
      best = takes ? z : best;
      code = takes ? static_cast<unsigned>(element) : code;
    }
    const bool cut_off = best <= 0;
    target.y[i] = lib::from_f32<T>(cut_off ? 0.0f : best);
    if (!cut_off) eight_codes ^= (code ^ kCutOff) << 4 * i;
  }
  target.store_codes(eight_codes);
}

template <class T, class Filter, class Images>
__global__ void __launch_bounds__(kThreads, 1)
    conv_relu_pool_short_forward_kernel(SIMT_GRID_CONST(Shape) s, SIMT_GRID_CONST(Images) images,
                                        const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ y,
                                        std::uint8_t* __restrict__ codes) {
  using P = Patch<Filter>;
  using BlockColumns = Columns<T, Filter>;
  SIMT_SHARED(BlockColumns, columns);
  const int block_filter = static_cast<int>(blockIdx.y) * kBlockFilters;
  w += std::int64_t{block_filter} * Filter::kWeights, b += block_filter;
  columns.load(w, b, s.filters - block_filter);
  __syncthreads();  // all weights are there
  columns.build();
  __syncthreads();  // all columns are there
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int thread_filter = lane % 4 * kThreadFilters;  // of the block's
  const auto first = simt::load_as<float4>(columns.biases + thread_filter);
  const auto second = simt::load_as<float4>(columns.biases + thread_filter + kPairs);
  float biases[kPairs][4] = {{first.x, second.x, first.x, second.x},
                             {first.y, second.y, first.y, second.y},
                             {first.z, second.z, first.z, second.z},
                             {first.w, second.w, first.w, second.w}};
  const typename Rows<Filter>::Offsets offsets(s.grid);
  const int stride = static_cast<int>(gridDim.x) * kWarps;
  for (int tile = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32;
       tile * kTileWindows < s.grid.windows; tile += stride) {
    Rows<Filter> rows;
    SIMT_UNROLL_ON_GPU
    for (int which = 0; which < 2; ++which) {
      const int window = tile * kTileWindows + 8 * which + lane / 4;
      const WindowGrid::Position at = s.grid.position(window < s.grid.windows ? window : s.grid.windows - 1);
      rows.template load<T>(images, s, offsets, at, which);
    }
    Outputs<T> outputs[2];
    SIMT_UNROLL_ON_GPU
    for (int pair = 0; pair < kPairs; ++pair) {
      float products[kElements][4];
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < P::kSteps * kElements; i += 2) {
        const int e = i % kElements, step = i / kElements;
        const auto fragments = simt::load_as<uint4>(&columns.fragments[pair][step][e / 2][lane]);
        lib::mma_m16n8k16<T>(products[e], rows.registers[step], fragments.x, fragments.y,
                             step == 0 ? biases[pair] : products[e]);
        lib::mma_m16n8k16<T>(products[e + 1], rows.registers[step], fragments.z, fragments.w,
                             step == 0 ? biases[pair] : products[e + 1]);
      }
      SIMT_UNROLL_ON_GPU
      for (int which = 0; which < 2; ++which) {
        float sums[kElements][2];
        SIMT_UNROLL_ON_GPU
        for (int i = 0; i < kElements * 2; ++i) sums[i / 2][i % 2] = products[i / 2][2 * which + i % 2];
        outputs[which].take(pair, sums);
      }
    }
    const int first_window = tile * kTileWindows + lane / 4, filter = block_filter + thread_filter;
    unsigned large = 0;  // a bit for each window
    SIMT_UNROLL_ON_GPU
    for (int which = 0; which < 2; ++which) {
      const int window = first_window + 8 * which;
      if (window >= s.grid.windows || filter >= s.filters) continue;
      if (are_large(outputs[which].maxima)) [[unlikely]]
        large |= 1u << which;
      else
        Target<T>(s, y, codes, window, filter).store(outputs[which].vector(), outputs[which].codes, s.aligned);
    }
    for (int window = first_window; large != 0; window += 8, large >>= 1)
      if (large % 2 != 0)
        compute_again<T, Filter>(Target<T>(s, y, codes, window, filter), images, s, s.grid.position(window),
                                 w + thread_filter * Filter::kWeights, b + thread_filter);
  }
}

template <class T, class X, class Filter>
void launch(Stream& stream, const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  const WindowGrid grid(g.conv, g.out_height(), g.out_width());
  const auto* x = static_cast<const X*>(args.x);
  const std::int64_t row = g.conv.in_width * g.conv.in_channels;
  const StoredImages<T, X> images{x,
                                  lib::narrow<int>("conv_relu_pool", "elements of an image", g.conv.in_height * row)};
  const std::int64_t filters = g.conv.out_channels;
  const Shape shape{
      .grid = grid,
      .filters = lib::narrow<int>("conv_relu_pool", "out_channels", filters),
      .code_bytes = static_cast<int>(g.code_bytes_of_position()),
      .in_pairs = g.conv.padding == 0 && row % 2 == 0 && reinterpret_cast<std::uintptr_t>(x) % (2 * sizeof(X)) == 0,
      .aligned = filters % kThreadFilters == 0 && reinterpret_cast<std::uintptr_t>(args.y) % 16 == 0 &&
                 reinterpret_cast<std::uintptr_t>(args.codes) % 4 == 0};
  const std::int64_t blocks =
      std::min<std::int64_t>(lib::ceil_div(g.out_positions(), kTileWindows * kWarps), kMostBlocks);
  const simt::Config config{
      .grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(lib::ceil_div(filters, kBlockFilters))),
      .block = dim3(kThreads)};
  simt::launch<conv_relu_pool_short_forward_kernel<T, Filter, StoredImages<T, X>>>(
      stream, config, shape, images, static_cast<const T*>(args.w), static_cast<const T*>(args.b),
      static_cast<T*>(args.y), args.codes);
}

}  // namespace

namespace short_filters {

bool forward(Stream& stream, const ForwardArgs& args) {
  if (!knows(args.geometry)) return false;
  conv2d::with_short_filter(args.geometry.conv, [&]<class Filter>(Filter) {
    lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
      args.x_dtype == DType::f32 ? launch<T, float, Filter>(stream, args) : launch<T, T, Filter>(stream, args);
    });
  });
  return true;
}

}  // namespace short_filters

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
