// SPDX-License-Identifier: Apache-2.0
// Idea: the gradients of filters with few weights as a small matrix product (short_filters.cuh): g[k, (element,
//   filter)] sums, over all windows, an input of the window times the gradient that its code gives to that element. A
//   weight's gradient is the sum of four of these, one for each element. A thread holds dy and the codes of four
//   windows and four filters, and makes the columns in registers: all of a code's bits become masks for two windows at
//   once.
// Mapping: a warp multiplies 16 inputs by 16 windows and 32 filters; blockIdx.x: a slice of all windows, in tiles of
//   16, one a warp; blockIdx.y: 32 filters; blockIdx.z: 16 inputs of a patch. The sums of all warps meet in shared
//   memory at the end; the slices are added up by a second kernel (lib/split_k.h).
// Traffic and bound: dy and codes are read once, x comes from the L1 cache, where windows overlap. Bound by memory.
// Gains over the step before: tensor cores; an instruction that makes a column serves two windows.
// Still slow because: three of four products are by 0; the sums of a block, which are four times too many, are stored
//   and added up by hand.
// Limits: filters of with_short_filter; 2 x 2 windows, stride 1; 2^30 windows, 2^31 image elements. An infinity or a
//   NaN in x times the zero of another element is NaN.

#include <algorithm>
#include <cstdint>

#include "kernels/lib/element.h"
#include "kernels/lib/split_k.h"
#include "kernels/lib/tensor_core.h"
#include "kernels/ops/conv_relu_pool/short_filters.cuh"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr std::int64_t kMostSlices = 132;  // one for each multiprocessor of a large GPU
constexpr int kThreadWindows = 4;          // of a tile: lane % 4 and every fourth from there
constexpr int kWindowStep = kTileWindows / kThreadWindows;
constexpr int kThreadFilters = 4;  // neighbours

struct Shape {
  WindowGrid grid;
  int filters, code_bytes;  // a position's
  int tiles_of_slice;
  bool aligned;  // four filters of dy, and their codes, are one aligned access
};

/// dy and codes of a thread's windows and filters, by pairs of windows.
struct Gradients {
  static constexpr int kPairs = kThreadWindows / 2;
  std::uint32_t dy[kPairs][kThreadFilters];  // one of each window
  std::uint32_t codes[kPairs];               // of each window four, in half a register

  template <class T>
  __device__ void load(const Shape& s, const T* all_dy, const std::uint8_t* all_codes, int first_window, int filter) {
    uint2 of_window[kThreadWindows];
    std::uint32_t codes_of_window[kThreadWindows];
    const T* from = all_dy + std::int64_t{first_window} * s.filters + filter;
    const std::uint8_t* codes_from = all_codes + std::int64_t{first_window} * s.code_bytes + filter / 2;
    if (s.aligned && filter < s.filters && first_window + (kThreadWindows - 1) * kWindowStep < s.grid.windows) {
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kThreadWindows; ++i) {
        of_window[i] = simt::load_as<uint2>(from + i * (kWindowStep * s.filters));
        codes_of_window[i] = simt::load_as<std::uint16_t>(codes_from + i * (kWindowStep * s.code_bytes));
      }
    } else {
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kThreadWindows; ++i) {
        const int exist = first_window + i * kWindowStep < s.grid.windows ? s.filters - filter : 0;
        const auto element = [&](int which) { return which < exist ? from[which] : lib::from_f32<T>(0.0f); };
        const auto code = [&](int which) { return 2 * which < exist ? codes_from[which] : 0xffu; };
        of_window[i] = {lib::pair_of<T>(element(0), element(1)), lib::pair_of<T>(element(2), element(3))};
        codes_of_window[i] = code(0) | code(1) << 8;
        from += kWindowStep * s.filters;
        codes_from += kWindowStep * s.code_bytes;
      }
    }
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kPairs; ++i) {
      const uint2 a = of_window[2 * i], b = of_window[2 * i + 1];
      dy[i][0] = lib::lower_of_pairs(a.x, b.x), dy[i][1] = lib::upper_of_pairs(a.x, b.x);
      dy[i][2] = lib::lower_of_pairs(a.y, b.y), dy[i][3] = lib::upper_of_pairs(a.y, b.y);
      codes[i] = lib::lower_of_pairs(codes_of_window[2 * i], codes_of_window[2 * i + 1]);
    }
  }

  /// Bit `kBit` of filter kFilter's codes, in all bits of its window's half.
  template <int kFilter, int kBit>
  __device__ std::uint32_t mask(int pair) const {
    constexpr std::uint32_t kByte = 8u + kFilter / 2;  // in the lower half; 8: its highest bit, eight times
    constexpr std::uint32_t kUpperByte = kByte + 2;
    const std::uint32_t highest = codes[pair] << (7 - kFilter % 2 * 4 - kBit);
    return lib::permute_bytes<kUpperByte << 12 | kUpperByte << 8 | kByte << 4 | kByte>(highest, 0);
  }
};

/// What a warp has summed: of each filter of a thread and element of the window, 16 inputs by 8 columns.
template <class T>
struct Sums {
  float products[kThreadFilters][kElements][4] = {};
  float biases[kThreadFilters][4] = {};

  template <int kFilter>
  __device__ void add(const std::uint32_t (&inputs)[4], const Gradients& of) {
    using lib::kBitsOfA, lib::kBitsOfB, lib::kBitsOfC;
    std::uint32_t columns[kElements][Gradients::kPairs], all[Gradients::kPairs];
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < Gradients::kPairs; ++i) {
      const std::uint32_t odd = of.mask<kFilter, 0>(i), second = of.mask<kFilter, 1>(i);
      all[i] = lib::combine_bits<kBitsOfA & ~kBitsOfB>(of.dy[i][kFilter], of.mask<kFilter, 3>(i), 0);
      columns[0][i] = lib::combine_bits<kBitsOfA & ~kBitsOfB & ~kBitsOfC>(all[i], odd, second);
      columns[1][i] = lib::combine_bits<kBitsOfA & kBitsOfB & ~kBitsOfC>(all[i], odd, second);
      columns[2][i] = lib::combine_bits<kBitsOfA & ~kBitsOfB & kBitsOfC>(all[i], odd, second);
      columns[3][i] = lib::combine_bits<kBitsOfA & kBitsOfB & kBitsOfC>(all[i], odd, second);
    }
    SIMT_UNROLL_ON_GPU
    for (int e = 0; e < kElements; ++e)
      lib::mma_m16n8k16<T>(products[kFilter][e], inputs, columns[e][0], columns[e][1]);
    const std::uint32_t ones = lib::pair_of<T>(1.0f, 1.0f);
    lib::mma_m16n8k16<T>(biases[kFilter], {ones, ones, ones, ones}, all[0], all[1]);
  }
};

/// A block's sums, as its warps hold them. Those of the four filters of a thread are in different banks.
struct BlockSums {
  static constexpr int kPitch = kElements * 4 * 32 + 1;
  float products[kWarps][kThreadFilters][kPitch];  // [element][number of the fragment][lane]
  float biases[kWarps][kBlockFilters];

  template <class T>
  __device__ void store(const Sums<T>& sums) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    SIMT_UNROLL_ON_GPU
    for (int filter = 0; filter < kThreadFilters; ++filter) {
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kElements * 4; ++i)
        products[warp][filter][i * 32 + lane] = sums.products[filter][i / 4][i % 4];
      if (lane >= 4) continue;  // all rows are equal
      biases[warp][2 * lane * kThreadFilters + filter] = sums.biases[filter][0];
      biases[warp][(2 * lane + 1) * kThreadFilters + filter] = sums.biases[filter][1];
    }
  }

  /// Over all warps: of input `row`, of 16, and element `element`.
  __device__ float product(int filter, int element, int row) const {
    const int column = filter / kThreadFilters;
    const int at = (element * 4 + row / 8 * 2 + column % 2) * 32 + row % 8 * 4 + column / 2;
    float sum = 0;
    SIMT_UNROLL_ON_GPU
    for (int warp = 0; warp < kWarps; ++warp) sum += products[warp][filter % kThreadFilters][at];
    return sum;
  }
  __device__ float bias(int filter) const {
    float sum = 0;
    SIMT_UNROLL_ON_GPU
    for (int warp = 0; warp < kWarps; ++warp) sum += biases[warp][filter];
    return sum;
  }
};

/// The inputs of a warp's 16 windows, of which this thread has four: as an operand with inputs down and windows across.
template <class T, class Filter, class Images>
struct Inputs {
  const Images& images;
  const WindowGrid& grid;
  int k[2], offset[2];  // of this thread's two

  __device__ Inputs(const Images& from, const WindowGrid& of, int first_input) : images(from), grid(of) {
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < 2; ++i) {
      k[i] = first_input + static_cast<int>(threadIdx.x) % 32 / 4 + 8 * i;
      offset[i] = Patch<Filter>::offset(k[i], grid.width * Filter::kInputs);
    }
  }

  __device__ void load(std::uint32_t (&operand)[4], int first_window) const {
    typename Images::Element elements[kThreadWindows][2];
    const auto load_with = [&](auto element_at) {
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kThreadWindows; ++i) {
        const int window = first_window + i * kWindowStep;
        const WindowGrid::Position at = grid.position(window < grid.windows ? window : grid.windows - 1);
        element_at(images.image(at.image), at, elements[i]);
      }
    };
    if (grid.padding == 0)
      load_with([&](const auto* image, const WindowGrid::Position& at, auto& two) {
        const auto* const first = image + (at.y * grid.width + at.x) * Filter::kInputs;
        two[0] = images.element(first + offset[0]), two[1] = images.element(first + offset[1]);
      });
    else
      load_with([&](const auto* image, const WindowGrid::Position& at, auto& two) {
        for (int i = 0; i < 2; ++i) two[i] = padded_element<Filter>(images, image, grid, at, k[i]);
      });
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < 4; ++i)
      operand[i] = lib::pair_of<T>(elements[i / 2 * 2][i % 2], elements[i / 2 * 2 + 1][i % 2]);
  }
};

template <class T, class Filter, class Images>
__global__ void __launch_bounds__(kThreads, 1)
    conv_relu_pool_short_wgrad_kernel(SIMT_GRID_CONST(Shape) s, SIMT_GRID_CONST(Images) images,
                                      const T* __restrict__ dy, const std::uint8_t* __restrict__ codes,
                                      float* __restrict__ dw_slices, float* __restrict__ db_slices) {
  using P = Patch<Filter>;
  SIMT_DYNAMIC_SHARED(BlockSums, block);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int block_filter = static_cast<int>(blockIdx.y) * kBlockFilters;
  const int first_input = static_cast<int>(blockIdx.z) * 16;
  const int begin = static_cast<int>(blockIdx.x) * s.tiles_of_slice;
  const Inputs<T, Filter, Images> all_inputs(images, s.grid, first_input);
  Sums<T> sums;
  for (int i = static_cast<int>(threadIdx.x) / 32; i < s.tiles_of_slice; i += kWarps) {
    const int window = (begin + i) * kTileWindows + lane % 4;
    if (window - lane % 4 >= s.grid.windows) break;
    Gradients gradients;
    gradients.load(s, dy, codes, window, block_filter + lane / 4 * kThreadFilters);
    std::uint32_t inputs[4];
    all_inputs.load(inputs, window);
    sums.template add<0>(inputs, gradients);
    sums.template add<1>(inputs, gradients);
    sums.template add<2>(inputs, gradients);
    sums.template add<3>(inputs, gradients);
  }
  block->store(sums);
  __syncthreads();  // the sums of all warps are there
  const int filters = s.filters - block_filter < kBlockFilters ? s.filters - block_filter : kBlockFilters;
  const std::int64_t slice = std::int64_t{blockIdx.x} * gridDim.z + blockIdx.z;
  float* const dw = dw_slices + (slice * s.filters + block_filter) * Filter::kWeights;
  for (int i = static_cast<int>(threadIdx.x); i < filters * Filter::kWeights; i += kThreads) {
    const int filter = i / Filter::kWeights, weight = i % Filter::kWeights;
    const int first = weight / Filter::kRow * P::kRow + weight % Filter::kRow - first_input;
    float sum = 0;
    SIMT_UNROLL_ON_GPU
    for (int e = 0; e < kElements; ++e) {
      const int row = first + e / 2 * P::kRow + e % 2 * Filter::kInputs;
      if (P::kSteps == 1 || (row >= 0 && row < 16)) sum += block->product(filter, e, row);
    }
    dw[i] = sum;
  }
  if (static_cast<int>(threadIdx.x) < filters)
    db_slices[slice * s.filters + block_filter + static_cast<int>(threadIdx.x)] =
        blockIdx.z == 0 ? block->bias(static_cast<int>(threadIdx.x)) : 0.0f;
}

int steps_of(const Geometry& g) {
  int steps = 0;
  with_short_filter(g.conv, [&]<class Filter>(Filter) { steps = Patch<Filter>::kSteps; });
  return steps;
}

std::int64_t tiles_of(const Geometry& g) { return lib::ceil_div(g.out_positions(), kTileWindows); }

std::int64_t tiles_of_slice(const Geometry& g) {
  return std::max<std::int64_t>(1, lib::ceil_div(tiles_of(g), kMostSlices));
}

template <class T, class X, class Filter>
void launch(Stream& stream, const BackwardArgs& args, int slices, float* dw_slices, float* db_slices) {
  const Geometry& g = args.geometry;
  const std::int64_t image = g.conv.in_height * g.conv.in_width * g.conv.in_channels;
  const StoredImages<T, X> images{static_cast<const X*>(args.x),
                                  lib::narrow<int>("conv_relu_pool", "elements of an image", image)};
  const std::int64_t filters = g.conv.out_channels;
  const Shape shape{.grid = WindowGrid(g),
                    .filters = lib::narrow<int>("conv_relu_pool", "out_channels", filters),
                    .code_bytes = static_cast<int>(g.code_bytes_of_position()),
                    .tiles_of_slice = static_cast<int>(tiles_of_slice(g)),
                    .aligned = filters % kThreadFilters == 0 && reinterpret_cast<std::uintptr_t>(args.dy) % 8 == 0 &&
                               reinterpret_cast<std::uintptr_t>(args.codes) % 2 == 0};
  constexpr int kSteps = Patch<Filter>::kSteps;
  const simt::Config config{.grid = dim3(static_cast<unsigned>(slices / kSteps),
                                         static_cast<unsigned>(lib::ceil_div(filters, kBlockFilters)), kSteps),
                            .block = dim3(kThreads),
                            .shared_bytes = sizeof(BlockSums)};
  simt::launch<conv_relu_pool_short_wgrad_kernel<T, Filter, StoredImages<T, X>>>(
      stream, config, shape, images, static_cast<const T*>(args.dy), args.codes, dw_slices, db_slices);
}

}  // namespace

namespace short_filters {

std::size_t wgrad_workspace_bytes(const Geometry& g) {
  return static_cast<std::size_t>(kMostSlices * steps_of(g) * g.conv.out_channels * (g.conv.filter_elements() + 1)) *
         sizeof(float);
}

bool wgrad(Stream& stream, const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  if (!knows(g)) return false;
  if (g.conv.out_channels == 0) return true;
  lib::check_pointer("conv_relu_pool backward", "workspace", args.workspace);
  const auto slices =
      static_cast<int>(std::max<std::int64_t>(1, lib::ceil_div(tiles_of(g), tiles_of_slice(g)))) * steps_of(g);
  auto* dw_slices = static_cast<float*>(args.workspace);
  float* db_slices = dw_slices + slices * g.conv.weight_elements();
  with_short_filter(g.conv, [&]<class Filter>(Filter) {
    lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
      const auto run = args.x_dtype == DType::f32 ? launch<T, float, Filter> : launch<T, T, Filter>;
      run(stream, args, slices, dw_slices, db_slices);
    });
  });
  lib::sum_slices(stream, slices, {dw_slices, g.conv.weight_elements(), args.dw},
                  {db_slices, g.conv.out_channels, args.db}, args.accumulate, args.partial_sums);
  return true;
}

}  // namespace short_filters

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
