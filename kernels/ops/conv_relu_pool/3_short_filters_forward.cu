// SPDX-License-Identifier: Apache-2.0
// Idea: filters with few weights (a first convolution) without matrices: the inputs of a 2 x 2 window, of which its
//   four elements share most, are loaded into registers once and serve eight filters, whose outputs are one 16-byte
//   store.
// Mapping: a thread per window and eight filters; neighbouring threads take the next filters of the same window, so
//   that stores are contiguous. A block keeps all filters and biases in shared memory, as f32.
// Traffic and bound: x comes from the L1 cache, out_channels / 8 times; y and half a byte of code an output are
//   written. For an output four products for each weight, and some 25 instructions for the maximum: bound by issuing
//   them.
// Gains over the step before: no k-tiles that are half empty, no addresses of patches; stores of 16 bytes.
// Still slow because: products on the floating-point units; inputs are converted again for each eight filters.
// Limits: filters of with_short_filter, at most 256; 2 x 2 windows, stride 1; 2^31 vectors of outputs, image elements.

#include <cstdint>

#include "kernels/lib/element.h"
#include "kernels/lib/reference.h"
#include "kernels/lib/split_k.h"
#include "kernels/ops/conv2d/products.cuh"
#include "kernels/ops/conv_relu_pool/short_filters.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kThreads = 256;
constexpr int kVector = lib::kVectorElements;  // filters of a thread
constexpr std::int64_t kMostFilters = 256;

struct Shape {
  int filters, code_bytes, items;  // a thread's windows and eight filters are an item
  conv2d::Divisor vectors, windows_of_line, lines_of_image;
  int height, width, padding;
  bool aligned;  // eight outputs, and their codes, are one aligned access
};

template <class T>
struct alignas(16) OutputVector {
  T elements[kVector];
};

/// Filters in shared memory: kWeights, the bias, up to a multiple of four; eight of them end four floats later, so that
/// those of four neighbouring threads are in different banks.
template <class Filter>
struct FilterTable {
  static constexpr int kQuads = (Filter::kWeights + 1 + 3) / 4;
  static constexpr int kPitch = 4 * kQuads;
  static constexpr int kVectorPitch = kVector * kPitch + 4;

  float weights[kPitch];

  __device__ static float* at(float* table, int filter) {
    return table + filter / kVector * kVectorPitch + filter % kVector * kPitch;
  }
  /// Loads a filter; the last of its numbers that counts is the bias.
  __device__ explicit FilterTable(const float* from) {
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kQuads; ++i) {
      const auto quad = simt::load_as<float4>(from + 4 * i);
      weights[4 * i] = quad.x, weights[4 * i + 1] = quad.y, weights[4 * i + 2] = quad.z, weights[4 * i + 3] = quad.w;
    }
  }
};

/// The inputs of a 2 x 2 window: those under its first element's filter, and a row and a column more.
template <class Filter>
struct WindowInputs {
  static constexpr int kSide = Filter::kKernel + 1;
  static constexpr int kColumns = kSide * Filter::kInputs;
  float values[kSide][kColumns];

  template <class T>
  __device__ WindowInputs(const T* image, const Shape& s, int y, int x) {
    const T* const first = image + (y * s.width + x) * Filter::kInputs;
    const int pitch = s.width * Filter::kInputs;
    if (y >= 0 && y + kSide <= s.height && x >= 0 && x + kSide <= s.width)
      load(first, pitch, [](int, int) { return true; });
    else
      load(first, pitch, [&](int row, int column) {
        return y + row >= 0 && y + row < s.height && x + column >= 0 && x + column < s.width;
      });
  }

  template <class T, class Exists>
  __device__ void load(const T* first, int pitch, Exists exists) {
    SIMT_UNROLL_ON_GPU
    for (int row = 0; row < kSide; ++row) {
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kColumns; ++i)
        values[row][i] = exists(row, i / Filter::kInputs) ? lib::to_f32(first[row * pitch + i]) : 0.0f;
    }
  }

  /// Its last number is the bias.
  __device__ float convolve(const float* weights, int down, int across) const {
    float sum = weights[Filter::kWeights];
    SIMT_UNROLL_ON_GPU
    for (int row = 0; row < Filter::kKernel; ++row) {
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < Filter::kRow; ++i)
        sum += values[down + row][across * Filter::kInputs + i] * weights[row * Filter::kRow + i];
    }
    return sum;
  }
};

template <class T, class Filter>
__global__ void __launch_bounds__(kThreads)
    conv_relu_pool_short_forward_kernel(SIMT_GRID_CONST(Shape) s, const T* __restrict__ x, const T* __restrict__ w,
                                        const T* __restrict__ b, T* __restrict__ y, std::uint8_t* __restrict__ codes) {
  using Table = FilterTable<Filter>;
  SIMT_DYNAMIC_SHARED(float, table);
  for (int i = static_cast<int>(threadIdx.x); i < s.vectors.value() * kVector * Table::kPitch; i += kThreads) {
    const int filter = i / Table::kPitch;
    const int number = i % Table::kPitch;
    float value = 0;
    if (filter < s.filters && number <= Filter::kWeights)
      value = lib::to_f32(number == Filter::kWeights ? b[filter] : w[filter * Filter::kWeights + number]);
    Table::at(table, filter)[number] = value;
  }
  __syncthreads();  // all filters are there
  const int item = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (item >= s.items) return;
  const auto [window, vector] = s.vectors.divide(item);
  const auto [line, column] = s.windows_of_line.divide(window);
  const auto [image, row] = s.lines_of_image.divide(line);
  const WindowInputs<Filter> inputs(x + std::int64_t{image} * s.height * s.width * Filter::kInputs, s,
                                    2 * row - s.padding, 2 * column - s.padding);
  const int first_filter = vector * kVector;
  const float* const filters = Table::at(table, first_filter);
  OutputVector<T> outputs;
  std::uint32_t eight_codes = 0;
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < kVector; ++i) {
    const Table filter(filters + i * Table::kPitch);
    float best = 0;
    unsigned code = 0;
    SIMT_UNROLL_ON_GPU
    for (unsigned element = 0; element < 4; ++element) {
      const float z = inputs.convolve(filter.weights, static_cast<int>(element) / 2, static_cast<int>(element) % 2);
      const bool takes = element == 0 || z > best || z != z;  // a NaN takes all, and no number takes it back
      best = takes ? z : best;
      code = takes ? element : code;
    }
    const bool cut_off = best <= 0;
    outputs.elements[i] = lib::from_f32<T>(cut_off ? 0.0f : best);
    eight_codes |= (cut_off ? kCutOff : code) << 4 * i;
  }
  T* y_here = y + std::int64_t{window} * s.filters + first_filter;
  std::uint8_t* codes_here = codes + std::int64_t{window} * s.code_bytes + first_filter / 2;
  if (s.aligned) {
    simt::store_as(y_here, outputs);
    simt::store_as(codes_here, eight_codes);
    return;
  }
  const int count = s.filters - first_filter < kVector ? s.filters - first_filter : kVector;
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < kVector; ++i) {
    if (i >= count) break;
    y_here[i] = outputs.elements[i];
    const unsigned both = eight_codes >> 4 * i;
    if (i % 2 == 0) codes_here[i / 2] = packed_codes(both & 15u, i + 1 < count ? both >> 4 & 15u : kCutOff);
  }
}

Shape shape_of(const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  const conv2d::Geometry& conv = g.conv;
  const auto as_int = [](std::int64_t value) { return static_cast<int>(value); };
  const std::int64_t vectors = lib::ceil_div(conv.out_channels, kVector);
  const std::int64_t padded_positions = (conv.in_height + 2 * conv.padding) * (conv.in_width + 2 * conv.padding);
  lib::narrow<int>("conv_relu_pool", "elements of a padded image", padded_positions * conv.in_channels);
  return {.filters = as_int(conv.out_channels),
          .code_bytes = as_int(g.code_bytes_of_position()),
          .items = lib::narrow<int>("conv_relu_pool", "vectors of outputs", g.out_positions() * vectors),
          .vectors = conv2d::Divisor(as_int(vectors)),
          .windows_of_line = conv2d::Divisor(lib::narrow<int>("conv_relu_pool", "width", g.out_width())),
          .lines_of_image = conv2d::Divisor(lib::narrow<int>("conv_relu_pool", "height", g.out_height())),
          .height = lib::narrow<int>("conv_relu_pool", "in_height", conv.in_height),
          .width = lib::narrow<int>("conv_relu_pool", "in_width", conv.in_width),
          .padding = as_int(conv.padding),
          .aligned = conv.out_channels % kVector == 0 && reinterpret_cast<std::uintptr_t>(args.y) % 16 == 0 &&
                     reinterpret_cast<std::uintptr_t>(args.codes) % 4 == 0};
}

}  // namespace

namespace short_filters {

bool forward(Stream& stream, const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  if (g.window != 2 || g.conv.stride != 1 || g.conv.out_channels > kMostFilters) return false;
  const auto launch_for = [&]<class Filter>(Filter) {
    const Shape shape = shape_of(args);
    const simt::Config config{.grid = dim3(static_cast<unsigned>(lib::ceil_div(shape.items, kThreads))),
                              .block = dim3(kThreads),
                              .shared_bytes = static_cast<std::size_t>(shape.vectors.value()) *
                                              FilterTable<Filter>::kVectorPitch * sizeof(float)};
    lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
      simt::launch<conv_relu_pool_short_forward_kernel<T, Filter>>(
          stream, config, shape, static_cast<const T*>(args.x), static_cast<const T*>(args.w),
          static_cast<const T*>(args.b), static_cast<T*>(args.y), args.codes);
    });
  };
  return with_short_filter(g.conv, launch_for);
}

}  // namespace short_filters

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
