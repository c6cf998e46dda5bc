// SPDX-License-Identifier: Apache-2.0
// Idea: 16 bytes of neighbouring channels per access; x is read once, in chunks of 8 rows that a thread keeps in
//   registers: their mean, then their squared deviations from it, merged with those of the chunks before by Chan's
//   formula. All are taken of x[r,c] - x[0,c], so that a large mean costs no digits. The rows are cut into slices for up
//   to 512 blocks, which a second kernel merges.
// Mapping: a block has a tile of up to 512 bytes of a row, and as many rows at once as it has threads for, so that a
//   warp's accesses are contiguous. normalize: the same tiles; a block computes mean, factor and bias of its channels
//   once.
// Traffic and bound: each element is read (and written) once; of the sums, 2 numbers a channel and slice go through
//   memory: at most 1/16 of x. Bound by memory.
// Gains over the step before: statistics reads half as much, in whole sectors; all multiprocessors have blocks; no
//   channel's numbers are loaded or combined again for each element.
// Still slow because: three small launches stand between x and y; the convolution that makes x could add up its
//   statistics, and the next one could normalize what it reads.
// Limits: 2^31 - 1 channels. Channels that do not fill vectors of 16 bytes, or arrays that are not aligned to 16, are
//   moved element by element.

#include "kernels/ops/batch_norm/vector.cuh"

namespace gradring::kernels::batch_norm {
inline namespace GRADRING_KERNEL_COPY {

// In 3_vector_backward.cu.
void vector_backward_sums(Stream& stream, const BackwardSumsArgs& args);
void vector_backward(Stream& stream, const BackwardArgs& args);

namespace {

/// Of kWidth channels: their means, then their M2; and the number of rows.
template <int kWidth>
struct Moments {
  static constexpr int kFloats = 2 * kWidth + 1;
  float values[kFloats] = {};

  __device__ float& count() { return values[2 * kWidth]; }
  __device__ void merge(const Moments& other) {
    const float more = other.values[2 * kWidth];
    const float total = count() + more;
    const float share = total > 0 ? more / total : 0.0f;
    SIMT_UNROLL
    for (int j = 0; j < kWidth; ++j) {
      const float delta = other.values[j] - values[j];
      values[j] += delta * share;
      values[kWidth + j] += other.values[kWidth + j] + delta * delta * (count() * share);
    }
    count() = total;
  }
  /// Merges the first `rows` >= 1 rows of a chunk, less `shift`.
  template <class T>
  __device__ void add(const Vector<T, kWidth> (&chunk)[kChunk], const Vector<T, kWidth>& shift, int rows) {
    Moments of_chunk;
    const float share = 1.0f / static_cast<float>(rows);
    SIMT_UNROLL
    for (int j = 0; j < kWidth; ++j) {
      float sum = 0, m2 = 0;
      SIMT_UNROLL
      for (int i = 0; i < kChunk; ++i) sum += i < rows ? chunk[i][j] - shift[j] : 0.0f;
      const float mean = sum * share;
      SIMT_UNROLL
      for (int i = 0; i < kChunk; ++i) {
        const float deviation = i < rows ? chunk[i][j] - shift[j] - mean : 0.0f;
        m2 += deviation * deviation;
      }
      of_chunk.values[j] = mean;
      of_chunk.values[kWidth + j] = m2;
    }
    of_chunk.count() = static_cast<float>(rows);
    merge(of_chunk);
  }
};

/// Slice s leaves mean[channels] (of x less its first row) and M2[channels] at partials + s * 2 * channels.
template <class T, int kWidth>
__global__ void __launch_bounds__(kVectorThreads, kResidentBlocks<kWidth>)
    batch_norm_statistics_slices_kernel(const T* __restrict__ x, std::int64_t rows, int channels,
                                        std::int64_t rows_of_slice, float* __restrict__ partials) {
  const TileOfBlock<kWidth> tile(channels);
  const SliceOfBlock slice(rows, rows_of_slice);
  const std::int64_t stride = blockDim.y;
  Moments<kWidth> mine;
  if (tile.has_mine() && rows > 0) {
    const Vector<T, kWidth> shift = load_vector<T, kWidth>(x, tile.first + tile.mine);
    for (std::int64_t row = slice.begin + threadIdx.y; row < slice.end; row += kChunk * stride) {
      Vector<T, kWidth> chunk[kChunk] = {};
      int count = 0;
      SIMT_UNROLL
      for (int i = 0; i < kChunk; ++i)
        if (row + i * stride < slice.end) {
          chunk[i] = load_vector<T, kWidth>(x, (row + i * stride) * channels + tile.first + tile.mine);
          ++count;
        }
      mine.add(chunk, shift, count);
    }
  }
  merge_rows(mine);
  store_partials(tile, mine, partials + std::size_t{blockIdx.x} * 2 * static_cast<std::size_t>(channels), channels);
}

template <class T>
__global__ void __launch_bounds__(kVectorThreads)
    batch_norm_statistics_total_kernel(const T* __restrict__ x, const float* __restrict__ partials, unsigned slices,
                                       std::int64_t rows, std::int64_t rows_of_slice, int channels,
                                       float* __restrict__ statistics) {
  const int c = static_cast<int>(blockIdx.x * kTotalChannels + threadIdx.x);
  Moments<1> mine;
  if (c < channels)
    for (unsigned slice = threadIdx.y; slice < slices; slice += blockDim.y) {
      const float* from = partials + std::size_t{slice} * 2 * static_cast<std::size_t>(channels) + c;
      const std::int64_t left = rows - slice * rows_of_slice;
      Moments<1> other;
      other.values[0] = from[0];
      other.values[1] = from[channels];
      other.count() = static_cast<float>(left < rows_of_slice ? left : rows_of_slice);
      mine.merge(other);
    }
  merge_rows(mine);
  if (threadIdx.y > 0 || c >= channels) return;
  statistics[c] = rows > 0 ? lib::to_f32(x[c]) + mine.values[0] : 0.0f;
  statistics[channels + c] = mine.values[1];
  if (c == 0) statistics[2 * std::int64_t{channels}] = static_cast<float>(rows);
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kVectorThreads)
    batch_norm_normalize_vector_kernel(SIMT_GRID_CONST(NormalizeArgs) args) {
  constexpr int kRows = 4;
  using Table = float[3][kTileChannels];
  SIMT_SHARED(Table, table);
  const TileOfBlock<kWidth> tile(static_cast<int>(args.channels));
  tile.for_each_channel([&](int i) {
    const Forward forward = Forward::of<T>(args, tile.first + i);
    table[0][i] = forward.mean;
    table[1][i] = forward.scale;
    table[2][i] = forward.bias;
  });
  __syncthreads();  // each thread reads what others computed of its channels
  if (!tile.has_mine()) return;
  Forward forward[kWidth];
  SIMT_UNROLL
  for (int j = 0; j < kWidth; ++j)
    forward[j] = {table[0][tile.mine + j], table[1][tile.mine + j], table[2][tile.mine + j]};
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.y;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  for (std::int64_t row = first; row < args.rows; row += kRows * stride) {
    // All loads come before the stores, which may be to the same memory: so they are under way together.
    Vector<T, kWidth> x[kRows] = {}, residual[kRows] = {};
    SIMT_UNROLL
    for (int i = 0; i < kRows; ++i)
      if (row + i * stride < args.rows) {
        const std::int64_t at = (row + i * stride) * args.channels + tile.first + tile.mine;
        x[i] = load_vector<T, kWidth>(args.x, at);
        if (args.residual) residual[i] = load_vector<T, kWidth>(args.residual, at);
      }
    SIMT_UNROLL
    for (int i = 0; i < kRows; ++i)
      if (row + i * stride < args.rows) {
        SIMT_UNROLL
        for (int j = 0; j < kWidth; ++j) {
          float value = forward[j](x[i][j]);
          if (args.residual) value += residual[i][j];
          x[i].set(j, args.relu ? relu_of(value) : value);
        }
        store_vector(args.y, (row + i * stride) * args.channels + tile.first + tile.mine, x[i]);
      }
  }
}

template <class T, int kWidth>
void launch_statistics(Stream& stream, const StatisticsArgs& args, int channels) {
  const Tiling tiling(args.rows, args.channels, kWidth, sizeof(T));
  const auto* const x = static_cast<const T*>(args.x);
  auto* const partials = static_cast<float*>(args.workspace);
  simt::launch<batch_norm_statistics_slices_kernel<T, kWidth>>(stream, tiling.config(tiling.slices), x, args.rows,
                                                               channels, tiling.rows_of_slice, partials);
  simt::launch<batch_norm_statistics_total_kernel<T>>(stream, config_of_totals(args.channels), x, partials,
                                                      tiling.slices, args.rows, tiling.rows_of_slice, channels,
                                                      args.statistics);
}

void statistics(Stream& stream, const StatisticsArgs& args) {
  check_args(args);
  const int channels = lib::narrow<int>("batch_norm", "channels", args.channels);
  lib::check_pointer("batch_norm statistics", "workspace", args.workspace);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    with_width<T>(has_vectors<T>(args.channels, {args.x}),
                  [&](auto width) { launch_statistics<T, width.value>(stream, args, channels); });
  });
}

void normalize(Stream& stream, const NormalizeArgs& args) {
  check_args(args);
  if (args.rows == 0) return;
  lib::narrow<int>("batch_norm", "channels", args.channels);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    with_width<T>(has_vectors<T>(args.channels, {args.x, args.residual, args.y}), [&](auto width) {
      const Tiling tiling(args.rows, args.channels, width.value, sizeof(T));
      simt::launch<batch_norm_normalize_vector_kernel<T, width.value>>(
          stream, tiling.config_for_elements(stream, args.rows), args);
    });
  });
}

/// Of the type and alignment that take most.
std::size_t workspace_bytes(std::int64_t rows, std::int64_t channels) {
  std::int64_t slices = 1;
  for (const std::size_t element_bytes : {sizeof(float), sizeof(std::uint16_t)})
    for (const int width : {1, kVectorBytes / static_cast<int>(element_bytes)})
      slices = std::max(slices, Tiling(rows, channels, width, element_bytes).most_slices(rows));
  return static_cast<std::size_t>(slices) * 2 * static_cast<std::size_t>(channels) * sizeof(float);
}

}  // namespace

Variant vector() {
  return {"vector",        statistics,           merge,           from_running,    fold,
          normalize,       vector_backward_sums, vector_backward, workspace_bytes, lib::supports_cuda_floating,
          lib::is_floating};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::batch_norm
