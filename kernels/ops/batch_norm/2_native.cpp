// SPDX-License-Identifier: Apache-2.0
// Idea: for a CPU, the same passes as loops along the channels, which its compiler vectorizes. Statistics read 16 rows
//   twice, of which the second time comes from the first-level cache: their mean, then their squared deviations, merged
//   with those of the rows before by Chan's formula. All are taken of x[r,c] - x[0,c], so that a large mean costs no
//   digits.
// Mapping: a worker per run of slices of rows (sums) or of rows. Sums take four rows at a time, and 512 channels, whose
//   sums or factors are arrays in the first-level cache.
// Traffic and bound: each element is read (and written) once from memory, which is the bound.
// Gains over the step before: neighbours in memory are neighbours in a vector; no barriers; factors are computed once for
//   64 rows or more.
// Still slow because: every pass reads again what the one before has just left.
// Limits: f32; 2^31 - 1 channels.

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "kernels/lib/native_vector.h"
#include "kernels/lib/rows.h"
#include "kernels/lib/split_k.h"
#include "kernels/ops/batch_norm/per_channel.cuh"

namespace gradring::kernels::batch_norm {
inline namespace GRADRING_KERNEL_COPY {
namespace native {
namespace {

constexpr std::int64_t kWidth = 512;      // channels at a time: a few arrays of so many stay in the first-level cache
constexpr std::int64_t kChunk = 16;       // rows whose statistics are taken together
constexpr std::int64_t kFactorRows = 64;  // rows for which factors of more channels than kWidth are computed once
constexpr std::int64_t kMostSlices = 64;
constexpr std::int64_t kLeastRows = 64;  // of a slice
using Channels = float[kWidth];

/// A slice of the rows, for sums: by the shape alone.
std::int64_t rows_of_slice(std::int64_t rows) {
  return std::max(kLeastRows, lib::ceil_div(lib::ceil_div(rows, kMostSlices), kChunk) * kChunk);
}
std::int64_t slices_of(std::int64_t rows) {
  return std::max<std::int64_t>(lib::ceil_div(rows, rows_of_slice(rows)), 1);
}
std::size_t workspace_bytes(std::int64_t rows, std::int64_t channels) {
  const std::int64_t most = std::clamp<std::int64_t>(lib::ceil_div(rows, kLeastRows), 1, kMostSlices);
  return static_cast<std::size_t>(most) * sums_elements(channels) * sizeof(float);
}

/// Calls visit(row, rows, c, width) for rows [begin, end) in chunks, and in each for all channels, kWidth at a time.
template <class Visit>
void for_each_chunk(std::int64_t begin, std::int64_t end, std::int64_t chunk, std::int64_t channels, Visit visit) {
  for (std::int64_t row = begin; row < end; row += chunk)
    for (std::int64_t c = 0; c < channels; c += kWidth)
      visit(row, std::min(chunk, end - row), c, std::min(kWidth, channels - c));
}

/// Rows for which factors of channels are computed once: all, if the factors stay in the first-level cache.
std::int64_t rows_of_factors(std::int64_t rows, std::int64_t channels) {
  return channels <= kWidth ? std::max<std::int64_t>(rows, 1) : kFactorRows;
}

/// Calls visit(r, count as a std::integral_constant) for rows [0, rows), four at a time as long as there are as many.
template <class Visit>
void for_each_four(std::int64_t rows, Visit visit) {
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) visit(r, std::integral_constant<int, 4>());
  for (; r < rows; ++r) visit(r, std::integral_constant<int, 1>());
}

/// Merges mean and M2 of `more` rows into those of `before` rows.
void merge_into(float* __restrict means, float* __restrict m2s, const float* __restrict mean,
                const float* __restrict m2, std::int64_t before, std::int64_t more, std::int64_t width) {
  const float share = static_cast<float>(more) / static_cast<float>(before + more);
  const float factor = static_cast<float>(before) * share;
  for (std::int64_t c = 0; c < width; ++c) {
    const float delta = mean[c] - means[c];
    means[c] += delta * share;
    m2s[c] += m2[c] + delta * delta * factor;
  }
}

/// Mean and M2 of `rows` rows, less `shift`.
void take_chunk(const float* __restrict x, const float* __restrict shift, std::int64_t stride, std::int64_t rows,
                std::int64_t width, float* __restrict mean, float* __restrict m2) {
  std::fill_n(mean, width, 0.0f);
  std::fill_n(m2, width, 0.0f);
  for_each_four(rows, [=](std::int64_t r, auto count) {
    const float* __restrict from = x + r * stride;
    for (std::int64_t c = 0; c < width; ++c) {
      float sum = 0;
      SIMT_UNROLL
      for (int i = 0; i < count.value; ++i) sum += from[i * stride + c] - shift[c];
      mean[c] += sum;
    }
  });
  const float share = 1.0f / static_cast<float>(rows);
  for (std::int64_t c = 0; c < width; ++c) mean[c] *= share;
  for_each_four(rows, [=](std::int64_t r, auto count) {
    const float* __restrict from = x + r * stride;
    for (std::int64_t c = 0; c < width; ++c) {
      float sum = 0;
      SIMT_UNROLL
      for (int i = 0; i < count.value; ++i) {
        const float deviation = from[i * stride + c] - shift[c] - mean[c];
        sum += deviation * deviation;
      }
      m2[c] += sum;
    }
  });
}

void statistics_slices_kernel(SIMT_GRID_CONST(StatisticsArgs) args) {
  const auto* const x = static_cast<const float*>(args.x);
  const std::int64_t channels = args.channels, each = rows_of_slice(args.rows);
  for (std::int64_t slice : lib::row_range(slices_of(args.rows))) {
    float* const means = static_cast<float*>(args.workspace) + slice * 2 * channels;
    std::fill_n(means, 2 * channels, 0.0f);
    const std::int64_t begin = slice * each;
    for_each_chunk(begin, std::min(begin + each, args.rows), kChunk, channels,
                   [&](std::int64_t row, std::int64_t rows, std::int64_t c, std::int64_t width) {
                     Channels mean, m2;
                     take_chunk(x + row * channels + c, x + c, channels, rows, width, mean, m2);
                     merge_into(means + c, means + channels + c, mean, m2, row - begin, rows, width);
                   });
  }
}

void statistics_total_kernel(SIMT_GRID_CONST(StatisticsArgs) args) {
  const auto* const x = static_cast<const float*>(args.x);
  const auto* const partials = static_cast<const float*>(args.workspace);
  const std::int64_t channels = args.channels, each = rows_of_slice(args.rows);
  float* const means = args.statistics;
  std::fill_n(means, 2 * channels, 0.0f);
  for (std::int64_t slice = 0; slice * each < args.rows; ++slice) {
    const float* const partial = partials + slice * 2 * channels;
    merge_into(means, means + channels, partial, partial + channels, slice * each,
               std::min(each, args.rows - slice * each), channels);
  }
  for (std::int64_t c = 0; args.rows > 0 && c < channels; ++c) means[c] += x[c];
  means[2 * channels] = static_cast<float>(args.rows);
}

template <bool kResidual, bool kRelu>
void normalize_kernel(SIMT_GRID_CONST(NormalizeArgs) args) {
  const auto range = lib::row_range(args.rows);
  const std::int64_t channels = args.channels;
  for_each_chunk(*range.begin(), *range.end(), rows_of_factors(args.rows, channels), channels,
                 [&](std::int64_t row, std::int64_t rows, std::int64_t c, std::int64_t width) {
                   Channels mean, scale, bias;
                   for (std::int64_t i = 0; i < width; ++i) {
                     const Forward forward = Forward::of<float>(args, static_cast<int>(c + i));
                     mean[i] = forward.mean;
                     scale[i] = forward.scale;
                     bias[i] = forward.bias;
                   }
                   for (std::int64_t r = row; r < row + rows; ++r) {
                     const std::int64_t at = r * channels + c;
                     const auto* const x = static_cast<const float*>(args.x) + at;
                     const auto* const residual = kResidual ? static_cast<const float*>(args.residual) + at : nullptr;
                     auto* const y = static_cast<float*>(args.y) + at;
                     GRADRING_SAME_OR_APART
                     for (std::int64_t i = 0; i < width; ++i) {
                       float value = (x[i] - mean[i]) * scale[i] + bias[i];
                       if constexpr (kResidual) value += residual[i];
                       y[i] = kRelu ? relu_of(value) : value;
                     }
                   }
                 });
}

/// Adds the sums of kRows rows of dy' and of dy' * (x - mean).
template <bool kRelu, int kRows>
void add_sums(const float* __restrict x, const float* __restrict y, const float* __restrict dy,
              const float* __restrict mean, std::int64_t stride, std::int64_t width, float* __restrict sums,
              float* __restrict products) {
  GRADRING_SAME_OR_APART
  for (std::int64_t c = 0; c < width; ++c) {
    float sum = 0, product = 0;
    SIMT_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const float passing = dy[i * stride + c];
      const float gradient = !kRelu || y[i * stride + c] > 0 ? passing : 0.0f;
      sum += gradient;
      product += gradient * (x[i * stride + c] - mean[c]);
    }
    sums[c] += sum;
    products[c] += product;
  }
}

template <bool kRelu>
void backward_sums_slices_kernel(SIMT_GRID_CONST(BackwardSumsArgs) args) {
  const std::int64_t channels = args.channels, each = rows_of_slice(args.rows);
  for (std::int64_t slice : lib::row_range(slices_of(args.rows))) {
    float* const totals = static_cast<float*>(args.workspace) + slice * 2 * channels;
    std::fill_n(totals, 2 * channels, 0.0f);
    for_each_chunk(slice * each, std::min((slice + 1) * each, args.rows), kChunk, channels,
                   [&](std::int64_t row, std::int64_t rows, std::int64_t c, std::int64_t width) {
                     const std::int64_t at = row * channels + c;
                     Channels sums, products;
                     std::fill_n(sums, width, 0.0f);
                     std::fill_n(products, width, 0.0f);
                     for_each_four(rows, [&](std::int64_t r, auto count) {
                       const std::int64_t first = at + r * channels;
                       add_sums<kRelu, count.value>(static_cast<const float*>(args.x) + first,
                                                    kRelu ? static_cast<const float*>(args.y) + first : nullptr,
                                                    static_cast<const float*>(args.dy) + first, args.saved + c,
                                                    channels, width, sums, products);
                     });
                     for (std::int64_t i = 0; i < width; ++i) totals[c + i] += sums[i];
                     for (std::int64_t i = 0; i < width; ++i) totals[channels + c + i] += products[i];
                   });
  }
}

void backward_sums_total_kernel(SIMT_GRID_CONST(BackwardSumsArgs) args) {
  const auto* const partials = static_cast<const float*>(args.workspace);
  const std::int64_t channels = args.channels, slices = slices_of(args.rows);
  for (std::int64_t c = 0; c < channels; c += kWidth) {
    const std::int64_t width = std::min(kWidth, channels - c);
    Channels sums = {}, products = {};
    for (std::int64_t slice = 0; slice < slices; ++slice) {
      const float* const from = partials + slice * 2 * channels + c;
      for (std::int64_t i = 0; i < width; ++i) sums[i] += from[i];
      for (std::int64_t i = 0; i < width; ++i) products[i] += from[channels + i];
    }
    for (std::int64_t i = 0; i < width; ++i) write_sums(args, static_cast<int>(c + i), sums[i], products[i]);
  }
}

template <bool kRelu, bool kResidual>
void backward_kernel(SIMT_GRID_CONST(BackwardArgs) args) {
  const auto range = lib::row_range(args.rows);
  const std::int64_t channels = args.channels;
  for_each_chunk(*range.begin(), *range.end(), rows_of_factors(args.rows, channels), channels,
                 [&](std::int64_t row, std::int64_t rows, std::int64_t c, std::int64_t width) {
                   Channels mean, scale, offset, slope;
                   for (std::int64_t i = 0; i < width; ++i) {
                     const Backward backward = Backward::of<float>(args, static_cast<int>(c + i));
                     mean[i] = backward.mean;
                     scale[i] = backward.scale;
                     offset[i] = backward.offset;
                     slope[i] = backward.slope;
                   }
                   for (std::int64_t r = row; r < row + rows; ++r) {
                     const std::int64_t at = r * channels + c;
                     const auto* const x = static_cast<const float*>(args.x) + at;
                     const auto* const y = kRelu ? static_cast<const float*>(args.y) + at : nullptr;
                     const auto* const dy = static_cast<const float*>(args.dy) + at;
                     auto* const dx = static_cast<float*>(args.dx) + at;
                     auto* const dresidual = kResidual ? static_cast<float*>(args.dresidual) + at : nullptr;
                     GRADRING_SAME_OR_APART
                     for (std::int64_t i = 0; i < width; ++i) {
                       const float gradient = !kRelu || y[i] > 0 ? dy[i] : 0.0f;
                       const float value = scale[i] * (gradient - offset[i] - (x[i] - mean[i]) * slope[i]);
                       if constexpr (kResidual) dresidual[i] = gradient;
                       dx[i] = value;
                     }
                   }
                 });
}

simt::Config one_thread_each(std::int64_t most, Stream& stream, std::int64_t elements) {
  const auto workers = simt::grid_for(stream, static_cast<std::size_t>(std::max<std::int64_t>(elements, 1))).grid.x;
  return {.grid = dim3(static_cast<unsigned>(std::min<std::int64_t>(workers, most))), .block = dim3(1)};
}

void statistics(Stream& stream, const StatisticsArgs& args) {
  check_args(args);
  lib::check_pointer("batch_norm statistics", "workspace", args.workspace);
  simt::launch_flat<statistics_slices_kernel>(
      stream, one_thread_each(slices_of(args.rows), stream, args.rows * args.channels), args);
  simt::launch_flat<statistics_total_kernel>(stream, {}, args);
}

void normalize(Stream& stream, const NormalizeArgs& args) {
  check_args(args);
  if (args.rows == 0) return;
  lib::with_bool(args.residual != nullptr, [&](auto residual) {
    lib::with_bool(args.relu, [&](auto relu) {
      simt::launch_flat<normalize_kernel<residual.value, relu.value>>(
          stream, one_thread_each(args.rows, stream, args.rows * args.channels), args);
    });
  });
}

void backward_sums(Stream& stream, const BackwardSumsArgs& args) {
  check_args(args);
  lib::narrow<int>("batch_norm", "channels", args.channels);
  lib::check_pointer("batch_norm backward_sums", "workspace", args.workspace);
  lib::with_bool(args.y != nullptr, [&](auto relu) {
    simt::launch_flat<backward_sums_slices_kernel<relu.value>>(
        stream, one_thread_each(slices_of(args.rows), stream, args.rows * args.channels), args);
  });
  simt::launch_flat<backward_sums_total_kernel>(stream, {}, args);
}

void backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  if (args.rows == 0) return;
  lib::with_bool(args.y != nullptr, [&](auto relu) {
    lib::with_bool(args.dresidual != nullptr, [&](auto residual) {
      simt::launch_flat<backward_kernel<relu.value, residual.value>>(
          stream, one_thread_each(args.rows, stream, args.rows * args.channels), args);
    });
  });
}

bool computes(DType dtype) { return dtype == DType::f32; }
bool supports(const Device& device, DType dtype) { return lib::supports_any(device, dtype) && computes(dtype); }

}  // namespace
}  // namespace native

Variant native_cpu() {
  return {"native",
          native::statistics,
          merge,
          from_running,
          fold,
          native::normalize,
          native::backward_sums,
          native::backward,
          native::workspace_bytes,
          native::supports,
          native::computes};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::batch_norm
