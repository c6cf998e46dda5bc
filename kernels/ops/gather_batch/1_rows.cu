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
__device__ inline T normalized(float pixel, float mean, float std) {
  return lib::from_f32<T>((pixel / 255.0f - mean) / std);
}

/// The augmentation of a launch.
struct Augmented {
  Augmentation what;
  std::uint64_t seed;
  const std::int64_t* epoch;
  int height, width;
  const std::int32_t* lambdas;
  std::int32_t* labels_b;
  float* weights_b;
};

/// Row y of an image that shows a resized box.
template <class T>
__device__ inline void write_resized(const Draw& draw, int y, const Augmented& augmented,
                                     const std::uint8_t* __restrict__ image, const float* __restrict__ means,
                                     const float* __restrict__ stds, T* __restrict__ to, int channels) {
  const int width = augmented.width;
  const Taps row = taps_of(y, draw.box.height, augmented.height);
  for (int x : lib::lane_range(width)) {
    const bool cut = draw.cuts_row(y) && draw.cuts_col(x);
    const Taps col = taps_of(draw.mirrored(x, width), draw.box.width, width);
    for (int c = 0; c < channels; ++c)
      to[x * channels + c] =
          cut ? lib::from_f32<T>(0.0f)
              : normalized<T>(resized_pixel(image + c, draw.box, row, col, width, channels), means[c], stds[c]);
  }
}

/// A row of pixels after the other, so that no index is divided by the width.
template <class T>
__device__ inline void write_augmented(const Augmented& augmented, std::int64_t sample,
                                       const std::uint8_t* __restrict__ x_row, const float* __restrict__ means,
                                       const float* __restrict__ stds, T* __restrict__ y_row, int channels) {
  const int height = augmented.height, width = augmented.width;
  const Draw draw = draw_of(augmented.what, augmented.seed, *augmented.epoch, sample, height, width);
  for (int y = 0; y < height; ++y) {
    T* to = y_row + y * width * channels;
    if (draw.box.height > 0) {
      write_resized(draw, y, augmented, x_row, means, stds, to, channels);
      continue;
    }
    const std::uint8_t* from = x_row + draw.row_of(y, height) * width * channels;
    for (int x : lib::lane_range(width)) {
      const bool cut = draw.cuts_row(y) && draw.cuts_col(x);
      const int source = draw.col_of(x, width) * channels;
      for (int c = 0; c < channels; ++c)
        to[x * channels + c] = cut ? lib::from_f32<T>(0.0f) : normalized<T>(from[source + c], means[c], stds[c]);
    }
  }
}

/// A mixture with the partner's image.
template <class T>
__device__ inline void write_mixed(const Augmented& augmented, const Mix& mix, std::int64_t sample,
                                   const std::uint8_t* __restrict__ x, const float* __restrict__ means,
                                   const float* __restrict__ stds, T* __restrict__ y_row, int channels) {
  const int height = augmented.height, width = augmented.width;
  const std::int64_t elements = std::int64_t{height} * width * channels;
  const Draw own = draw_of(augmented.what, augmented.seed, *augmented.epoch, sample, height, width);
  const Draw other = draw_of(augmented.what, augmented.seed, *augmented.epoch, mix.partner, height, width);
  const std::uint8_t* own_image = x + sample * elements;
  const std::uint8_t* other_image = x + mix.partner * elements;
  for (int row = 0; row < height; ++row)
    for (int col : lib::lane_range(width)) {
      const bool cut = own.cuts_row(row) && own.cuts_col(col);
      const bool pasted = mix.shows_partner(row, col);
      for (int c = 0; c < channels; ++c) {
        const int b = shown_pixel(other_image + c, other, row, col, height, width, channels);
        const int a = pasted ? b : shown_pixel(own_image + c, own, row, col, height, width, channels);
        y_row[(row * width + col) * channels + c] =
            cut ? lib::from_f32<T>(0.0f) : normalized<T>(mix.of(a, b), means[c], stds[c]);
      }
    }
}

enum class Mode : std::uint8_t { plain, augmented, mixed };

template <class T, Mode kMode>
__global__ void gather_batch_run_rows_kernel(const std::uint8_t* __restrict__ x,
                                             const std::int32_t* __restrict__ x_labels, std::int64_t samples,
                                             const std::int64_t* __restrict__ order, std::int64_t positions,
                                             const std::int64_t* __restrict__ first, const float* __restrict__ means,
                                             const float* __restrict__ stds, T* __restrict__ y,
                                             std::int32_t* __restrict__ labels, std::int64_t batch, int elements,
                                             int channels, SIMT_GRID_CONST(Augmented) augmented) {
  for (std::int64_t row : lib::row_range(batch)) {
    const std::int64_t position = *first + row;
    const std::int64_t sample = position >= 0 && position < positions ? order[position] : -1;
    const bool valid = sample >= 0 && sample < samples;
    if (threadIdx.x == 0) labels[row] = valid ? x_labels[sample] : -1;
    T* y_row = y + row * elements;
    if (!valid) {
      for (int i : lib::lane_range(elements)) y_row[i] = lib::from_f32<T>(std::numeric_limits<float>::quiet_NaN());
      if (kMode == Mode::mixed && threadIdx.x == 0) {
        augmented.labels_b[row] = -1;
        augmented.weights_b[row] = 0.0f;
      }
      continue;
    }
    const std::uint8_t* x_row = x + sample * elements;
    if constexpr (kMode == Mode::mixed) {
      const Mix mix = mix_of(augmented.what, augmented.seed, *augmented.epoch, sample, samples, augmented.height,
                             augmented.width, augmented.lambdas);
      if (threadIdx.x == 0) {
        augmented.labels_b[row] = x_labels[mix.partner];
        augmented.weights_b[row] = mix.label_weight(augmented.height, augmented.width);
      }
      write_mixed(augmented, mix, sample, x, means, stds, y_row, channels);
    } else if constexpr (kMode == Mode::augmented) {
      write_augmented(augmented, sample, x_row, means, stds, y_row, channels);
    } else if (channels == 1) {
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
  const bool augment = args.augment.any();
  const Augmented augmented{.what = args.augment,
                            .seed = args.seed,
                            .epoch = args.epoch,
                            .height = augment ? static_cast<int>(args.height()) : 0,
                            .width = augment ? static_cast<int>(args.width) : 0,
                            .lambdas = args.lambdas,
                            .labels_b = args.labels_b,
                            .weights_b = args.weights_b};
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    const auto launch = [&]<Mode kMode>() {
      simt::launch_flat<gather_batch_run_rows_kernel<T, kMode>>(
          stream, lib::rows_for(stream, args.batch, args.batch * args.elements), args.x, args.x_labels, args.samples,
          args.order, args.positions, args.first, args.mean, args.std, static_cast<T*>(args.y), args.labels, args.batch,
          elements, channels, augmented);
    };
    if (args.augment.mixes()) return launch.template operator()<Mode::mixed>();
    augment ? launch.template operator()<Mode::augmented>() : launch.template operator()<Mode::plain>();
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
