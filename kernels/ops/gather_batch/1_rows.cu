// SPDX-License-Identifier: Apache-2.0
// Idea: the data set stays on the device as bytes, and a list of samples says what a batch is: what crosses the bus per
//   step is nothing. Where the batch begins is read from device memory, so that the launch is the same for every step.
// Mapping: a warp per image (GPU) or a thread per run of images (CPU), walking along its pixels; lane 0 takes the
//   label. A second launch advances to the next batch.
// Traffic and bound: reads a byte and writes 4 or 2 per pixel; bound by memory, for small batches by the latency of a
//   warp that walks along its image.
// Still slow because: one pixel a load and a store; a small batch has fewer images than a large GPU has room for warps.
// Limits: fewer than 2^31 elements a sample.

#include "kernels/lib/rows.h"
#include "kernels/ops/gather_batch/images.cuh"

namespace gradring::kernels::gather_batch {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// A warp on a GPU, a thread on a CPU.
struct Warp {
  int line = 0, lines = 1;
  bool is_first = threadIdx.x == 0;

  __device__ auto range(int count) const { return lib::lane_range(count); }
  __device__ auto columns(int width) const { return lib::lane_range(width); }
};

template <class T, Mode kMode>
__global__ void gather_batch_run_rows_kernel(SIMT_GRID_CONST(Gather<T>) gather) {
  for (std::int64_t row : lib::row_range(gather.args.batch))
    write_image<kMode>(Warp(), gather, row, gather.visit(row),
                       [&](const std::uint8_t* __restrict__ from, T* __restrict__ to) {
                         const float* const means = gather.args.mean;
                         const float* const stds = gather.args.std;
                         const int channels = gather.channels;
                         if (channels == 1) {
                           const float only_mean = means[0];
                           const float only_std = stds[0];
                           for (int i : lib::lane_range(gather.elements))
                             to[i] = normalized<T>(from[i], only_mean, only_std);
                         } else {
                           for (int i : lib::lane_range(gather.elements))
                             to[i] = normalized<T>(from[i], means[i % channels], stds[i % channels]);
                         }
                       });
}

__global__ void gather_batch_advance_kernel(std::int64_t* first, std::int64_t by) { *first += by; }

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.batch == 0) return;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    with_mode(args.augment, [&]<Mode kMode>() {
      simt::launch_flat<gather_batch_run_rows_kernel<T, kMode>>(
          stream, lib::rows_for(stream, args.batch, args.batch * args.elements), Gather<T>(args));
    });
  });
  if (args.arrivals) simt::launch_flat<gather_batch_advance_kernel>(stream, simt::Config{}, args.first, args.batch);
}

}  // namespace

Variant rows() { return {"rows", run, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gather_batch
