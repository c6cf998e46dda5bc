// SPDX-License-Identifier: Apache-2.0
// Idea: as in 3_vector_forward.cu: 16 bytes of neighbouring channels per access, slices of rows for up to 512 blocks, and
//   a second kernel that adds them up. invstd is a factor of a whole column: it is multiplied once, at the end.
// Mapping: as there. backward: a block adds up the replicas' sums of its channels once, and makes four numbers of them.
// Traffic and bound: each pass reads dy, x and, with ReLU, y once; backward writes dx (and dresidual) once. Bound by
//   memory.
// Gains over the step before: whole sectors; all multiprocessors have blocks; no channel's numbers are combined again
//   for each element.
// Still slow because: dy, x and y are read by both passes; the kernel that makes dy could add up on the way. Every block
//   adds up the rows of all replicas, from the L2 cache.
// Limits: as there.

#include "kernels/ops/batch_norm/vector.cuh"

namespace gradring::kernels::batch_norm {
inline namespace GRADRING_KERNEL_COPY {

void vector_backward_sums(Stream& stream, const BackwardSumsArgs& args);
void vector_backward(Stream& stream, const BackwardArgs& args);

namespace {

/// That a thread loads at once: for 16 bits fewer, whose channels take more registers.
template <int kWidth>
constexpr int kRows = kWidth > 4 ? 2 : 4;

/// Of kWidth channels: sums of dy', then of dy' * (x - mean).
template <int kWidth>
struct Sums {
  static constexpr int kFloats = 2 * kWidth;
  float values[kFloats] = {};

  __device__ void merge(const Sums& other) {
    SIMT_UNROLL
    for (int j = 0; j < kFloats; ++j) values[j] += other.values[j];
  }
};

/// dy' of element j.
template <class T, int kWidth>
__device__ inline float masked(const Vector<T, kWidth>& dy, const Vector<T, kWidth>& y, bool has_y, int j) {
  return !has_y || y[j] > 0.0f ? dy[j] : 0.0f;
}

/// Slice s leaves the sums of dy' and of dy' * (x - mean) at partials + s * 2 * channels.
template <class T, int kWidth>
__global__ void __launch_bounds__(kVectorThreads, kResidentBlocks<kWidth>)
    batch_norm_backward_sums_slices_kernel(SIMT_GRID_CONST(BackwardSumsArgs) args, std::int64_t rows_of_slice,
                                           float* __restrict__ partials) {
  const int channels = static_cast<int>(args.channels);
  using Table = float[kTileChannels];
  SIMT_SHARED(Table, means);
  const TileOfBlock<kWidth> tile(channels);
  tile.for_each_channel([&](int i) { means[i] = args.saved[tile.first + i]; });
  __syncthreads();  // each thread reads what others loaded of its channels
  const SliceOfBlock slice(args.rows, rows_of_slice);
  const std::int64_t stride = blockDim.y;
  const bool has_y = args.y != nullptr;
  Sums<kWidth> mine;
  if (tile.has_mine()) {
    float mean[kWidth];
    SIMT_UNROLL
    for (int j = 0; j < kWidth; ++j) mean[j] = means[tile.mine + j];
    for (std::int64_t row = slice.begin + threadIdx.y; row < slice.end; row += kRows<kWidth> * stride) {
      Vector<T, kWidth> x[kRows<kWidth>] = {}, y[kRows<kWidth>] = {}, dy[kRows<kWidth>] = {};
      SIMT_UNROLL
      for (int i = 0; i < kRows<kWidth>; ++i)
        if (row + i * stride < slice.end) {
          const std::int64_t at = (row + i * stride) * channels + tile.first + tile.mine;
          x[i] = load_vector<T, kWidth>(args.x, at);
          dy[i] = load_vector<T, kWidth>(args.dy, at);
          if (has_y) y[i] = load_vector<T, kWidth>(args.y, at);
        }
      SIMT_UNROLL
      for (int i = 0; i < kRows<kWidth>; ++i) {  // rows after the last one are zeros
        SIMT_UNROLL
        for (int j = 0; j < kWidth; ++j) {
          const float value = masked(dy[i], y[i], has_y, j);
          mine.values[j] += value;
          mine.values[kWidth + j] += value * (x[i][j] - mean[j]);
        }
      }
    }
  }
  merge_rows(mine);
  store_partials(tile, mine, partials + std::size_t{blockIdx.x} * 2 * static_cast<std::size_t>(channels), channels);
}

__global__ void __launch_bounds__(kVectorThreads)
    batch_norm_backward_sums_total_kernel(SIMT_GRID_CONST(BackwardSumsArgs) args, const float* __restrict__ partials,
                                          unsigned slices) {
  const int channels = static_cast<int>(args.channels);
  const int c = static_cast<int>(blockIdx.x * kTotalChannels + threadIdx.x);
  Sums<1> mine;
  if (c < channels)
    for (unsigned slice = threadIdx.y; slice < slices; slice += blockDim.y) {
      const float* from = partials + std::size_t{slice} * 2 * static_cast<std::size_t>(channels) + c;
      mine.values[0] += from[0];
      mine.values[1] += from[channels];
    }
  merge_rows(mine);
  if (threadIdx.y == 0 && c < channels) write_sums(args, c, mine.values[0], mine.values[1]);
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kVectorThreads, kResidentBlocks<kWidth>)
    batch_norm_backward_vector_kernel(SIMT_GRID_CONST(BackwardArgs) args) {
  using Table = float[4][kTileChannels];
  SIMT_SHARED(Table, table);
  const TileOfBlock<kWidth> tile(static_cast<int>(args.channels));
  tile.for_each_channel([&](int i) {
    const Backward backward = Backward::of<T>(args, tile.first + i);
    table[0][i] = backward.mean;
    table[1][i] = backward.scale;
    table[2][i] = backward.offset;
    table[3][i] = backward.slope;
  });
  __syncthreads();  // each thread reads what others computed of its channels
  if (!tile.has_mine()) return;
  Backward backward[kWidth];
  SIMT_UNROLL
  for (int j = 0; j < kWidth; ++j) {
    const int i = tile.mine + j;
    backward[j] = {table[0][i], table[1][i], table[2][i], table[3][i]};
  }
  const bool has_y = args.y != nullptr;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.y;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  for (std::int64_t row = first; row < args.rows; row += kRows<kWidth> * stride) {
    // All loads come before the stores, which may be to the same memory: so they are under way together.
    Vector<T, kWidth> x[kRows<kWidth>] = {}, y[kRows<kWidth>] = {}, dy[kRows<kWidth>] = {};
    SIMT_UNROLL
    for (int i = 0; i < kRows<kWidth>; ++i)
      if (row + i * stride < args.rows) {
        const std::int64_t at = (row + i * stride) * args.channels + tile.first + tile.mine;
        x[i] = load_vector<T, kWidth>(args.x, at);
        dy[i] = load_vector<T, kWidth>(args.dy, at);
        if (has_y) y[i] = load_vector<T, kWidth>(args.y, at);
      }
    SIMT_UNROLL
    for (int i = 0; i < kRows<kWidth>; ++i)
      if (row + i * stride < args.rows) {
        const std::int64_t at = (row + i * stride) * args.channels + tile.first + tile.mine;
        SIMT_UNROLL
        for (int j = 0; j < kWidth; ++j) {
          const float value = masked(dy[i], y[i], has_y, j);
          dy[i].set(j, value);
          x[i].set(j, backward[j](x[i][j], value));
        }
        store_vector(args.dx, at, x[i]);
        if (args.dresidual) store_vector(args.dresidual, at, dy[i]);
      }
  }
}

}  // namespace

void vector_backward_sums(Stream& stream, const BackwardSumsArgs& args) {
  check_args(args);
  lib::narrow<int>("batch_norm", "channels", args.channels);
  lib::check_pointer("batch_norm backward_sums", "workspace", args.workspace);
  auto* const partials = static_cast<float*>(args.workspace);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    with_width<T>(has_vectors<T>(args.channels, {args.x, args.y, args.dy}), [&](auto width) {
      const Tiling tiling(args.rows, args.channels, width.value, sizeof(T));
      simt::launch<batch_norm_backward_sums_slices_kernel<T, width.value>>(stream, tiling.config(tiling.slices), args,
                                                                           tiling.rows_of_slice, partials);
      simt::launch<batch_norm_backward_sums_total_kernel>(stream, config_of_totals(args.channels), args, partials,
                                                          tiling.slices);
    });
  });
}

void vector_backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  if (args.rows == 0) return;
  lib::narrow<int>("batch_norm", "channels", args.channels);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    with_width<T>(has_vectors<T>(args.channels, {args.x, args.y, args.dy, args.dx, args.dresidual}), [&](auto width) {
      const Tiling tiling(args.rows, args.channels, width.value, sizeof(T));
      simt::launch<batch_norm_backward_vector_kernel<T, width.value>>(
          stream, tiling.config_for_elements(stream, args.rows), args);
    });
  });
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::batch_norm
