// SPDX-License-Identifier: Apache-2.0
// Idea: the data set stays on the device as bytes, and a list of samples says what a batch is: what crosses the bus per
//   step is nothing. Where the batch begins is read from device memory, so that the launch is the same for every step.
// Mapping: a warp per image (GPU) or a thread per run of images (CPU), walking along its pixels; lane 0 takes the
//   label.
// Traffic and bound: reads a byte and writes 4 or 2 per pixel; bound by memory, for small batches by the launch.
// Still slow because: one pixel a load and a store: 16 pixels could be read at once; and a small batch has fewer images
//   than a large GPU has room for warps.
// Limits: fewer than 2^31 elements a sample.

#include "kernels/ops/gather_batch/gather_batch.h"

#include <limits>

#include "kernels/lib/element.h"
#include "kernels/lib/rows.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gather_batch {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// Divisions, not products with reciprocals: those round differently, and the bits are to be the loader's.
template <class T>
__device__ inline T normalized(std::uint8_t pixel, float mean, float std) {
  return lib::from_f32<T>((static_cast<float>(pixel) / 255.0f - mean) / std);
}

template <class T>
__global__ void gather_batch_run_rows_kernel(const std::uint8_t* __restrict__ x,
                                             const std::int32_t* __restrict__ x_labels, std::int64_t samples,
                                             const std::int64_t* __restrict__ order, std::int64_t positions,
                                             const std::int64_t* __restrict__ first, const float* __restrict__ means,
                                             const float* __restrict__ stds, T* __restrict__ y,
                                             std::int32_t* __restrict__ labels, std::int64_t batch, int elements,
                                             int channels) {
  for (std::int64_t row : lib::row_range(batch)) {
    const std::int64_t position = *first + row;
    const std::int64_t sample = position >= 0 && position < positions ? order[position] : -1;
    const bool valid = sample >= 0 && sample < samples;
    if (threadIdx.x == 0) labels[row] = valid ? x_labels[sample] : -1;
    T* y_row = y + row * elements;
    if (!valid) {
      for (int i : lib::lane_range(elements)) y_row[i] = lib::from_f32<T>(std::numeric_limits<float>::quiet_NaN());
      continue;
    }
    const std::uint8_t* x_row = x + sample * elements;
    if (channels == 1) {
      const float only_mean = means[0];
      const float only_std = stds[0];
      for (int i : lib::lane_range(elements)) y_row[i] = normalized<T>(x_row[i], only_mean, only_std);
    } else {
      for (int i : lib::lane_range(elements))
        y_row[i] = normalized<T>(x_row[i], means[i % channels], stds[i % channels]);
    }
  }
}

__global__ void gather_batch_advance_kernel(std::int64_t* first, std::int64_t by) { *first += by; }

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.batch == 0) return;
  const int elements = lib::narrow<int>("gather_batch", "elements", args.elements);
  const int channels = lib::narrow<int>("gather_batch", "channels", args.channels);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<gather_batch_run_rows_kernel<T>>(
        stream, lib::rows_for(stream, args.batch, args.batch * args.elements), args.x, args.x_labels, args.samples,
        args.order, args.positions, args.first, args.mean, args.std, static_cast<T*>(args.y), args.labels, args.batch,
        elements, channels);
  });
}

void advance(Stream& stream, const AdvanceArgs& args) {
  check_args(args);
  simt::launch_flat<gather_batch_advance_kernel>(stream, simt::Config{}, args.first, args.by);
}

}  // namespace

Variant rows() { return {"rows", run, advance, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gather_batch
