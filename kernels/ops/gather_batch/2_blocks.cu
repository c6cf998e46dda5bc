// SPDX-License-Identifier: Apache-2.0
// Idea: one launch, in which no warp walks along a whole image; the last block that has read where the batch begins
//   advances it.
// Mapping: each image has a block of 4 warps. A thread takes four neighbouring pixels, in one load and one store; of an
//   augmented image a warp takes every fourth line, a lane a pixel.
//   What the 256 bytes become is a table in shared memory, which a block makes while it waits for its sample.
// Traffic and bound: as the step before. For hundreds of images bound by latency: where the batch begins, then the
//   sample, then its pixels.
// Gains over the step before: a launch and its latency; a quarter of the loads and stores; a small batch has as many
//   blocks as images, and an image is written in a few rounds, not in one for each 32 pixels; two divisions for a byte
//   of the table, not for a pixel.
// Still slow because: the four warps of an augmented image each draw what happens to it; bytes could be normalised by
//   the first convolution, which reads what is written here.
// Limits: as the step before; vectors where elements and addresses are multiples of four pixels.

#include "kernels/lib/channel_vector.h"
#include "kernels/lib/last_block.h"
#include "kernels/ops/gather_batch/images.cuh"

namespace gradring::kernels::gather_batch {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kVector = 4;         // pixels, or their channels
constexpr int kTableChannels = 4;  // of images that are written in vectors

/// A block.
struct Block {
  int line = static_cast<int>(threadIdx.x / 32), lines = kWarps;
  bool is_first = threadIdx.x == 0;

  __device__ simt::Range<int> range(int count) const { return {static_cast<int>(threadIdx.x), count, kThreads}; }
  __device__ simt::Range<int> columns(int width) const { return {static_cast<int>(threadIdx.x % 32), width, 32}; }
};

/// What each byte of each channel becomes.
template <class T>
using Table = T[kTableChannels][256];

template <class T>
__device__ void fill(Table<T>& table, const Gather<T>& gather) {
  for (int i = static_cast<int>(threadIdx.x); i < 256 * gather.channels; i += kThreads)
    table[i / 256][i % 256] = gather.value(i % 256, i / 256);
}

/// Four elements of an image from the i-th on.
template <class T>
__device__ void write_four(const std::uint8_t* from, T* to, int i, const Table<T>& table, int channels) {
  const auto bytes = simt::load_as<std::uint32_t>(from + i);
  int channel = channels == 1 ? 0 : i % channels;
  lib::ChannelVector<T, kVector> four;
  SIMT_UNROLL
  for (int j = 0; j < kVector; ++j) {
    four.values[j] = table[channel][bytes >> 8 * j & 255u];
    if (++channel == channels) channel = 0;
  }
  lib::store_word(to + i, simt::load_as<lib::VectorWord<T, kVector>>(four.values));
}

template <class T, Mode kMode, bool kVectors>
__global__ void gather_batch_run_blocks_kernel(SIMT_GRID_CONST(Gather<T>) gather) {
  SIMT_SHARED(Table<T>, table);
  const Block block;
  const Args& args = gather.args;
  const std::int64_t visit = gather.visit(blockIdx.x);
  if constexpr (kVectors) fill(table, gather);
  __syncthreads();  // the table is full, and all threads have read `first`
  const bool is_last = threadIdx.x == 0 && args.arrivals && lib::arrives_last(args.arrivals);
  write_image<kMode>(block, gather, blockIdx.x, visit, [&](const std::uint8_t* from, T* to) {
    if constexpr (kVectors)
      for (int vector : block.range(gather.elements / kVector))
        write_four(from, to, kVector * vector, table, gather.channels);
    else
      for (int i : block.range(gather.elements)) to[i] = gather.value(from[i], i % gather.channels);
  });
  if (is_last) *args.first += args.batch;
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.batch == 0) return;
  const simt::Config config{.grid = dim3(lib::narrow<unsigned>("gather_batch", "batch", args.batch)),
                            .block = dim3(kThreads)};
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    with_mode(args.augment, [&]<Mode kMode>() {
      constexpr bool kPlain = kMode == Mode::plain;
      const bool in_vectors = kPlain && args.channels <= kTableChannels &&
                              lib::fit_vectors<std::uint8_t, kVector>(args.elements, {args.x}) &&
                              lib::fit_vectors<T, kVector>(args.elements, {args.y});
      lib::with_bool(in_vectors, [&](auto vectors) {
        simt::launch<gather_batch_run_blocks_kernel<T, kMode, kPlain && vectors.value>>(stream, config,
                                                                                        Gather<T>(args));
      });
    });
  });
}

}  // namespace

Variant blocks() { return {"blocks", run, lib::supports_cuda_floating, lib::is_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gather_batch
