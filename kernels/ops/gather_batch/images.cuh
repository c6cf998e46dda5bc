// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/lib/element.h"
#include "kernels/lib/reference.h"
#include "kernels/ops/gather_batch/gather_batch.h"
#include "kernels/simt/simt.h"

/// How some threads write an image of a batch: what the kernels share.
namespace gradring::kernels::gather_batch {
inline namespace GRADRING_KERNEL_COPY {

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
  int height = 0, width = 0;
  const std::int32_t* lambdas;
  std::int32_t* labels_b;
  float* weights_b;

  explicit Augmented(const Args& args)
      : what(args.augment),
        seed(args.seed),
        epoch(args.epoch),
        lambdas(args.lambdas),
        labels_b(args.labels_b),
        weights_b(args.weights_b) {
    if (!what.any()) return;
    height = static_cast<int>(args.height());
    width = static_cast<int>(args.width);
  }
};

/// The threads that write an image: which of its lines, and which pixels of a line.
///   struct Threads {
///     int line, lines;                    every `lines`-th, from `line` on
///     bool is_first;                      one of them
///     auto range(int count) const;        of [0, count), for these of all threads
///     auto columns(int width) const;      of [0, width), for those of a line
///   };

/// Row y of an image that shows a resized box.
template <class T, class Threads>
__device__ inline void write_resized(const Threads& threads, const Draw& draw, int y, const Augmented& augmented,
                                     const std::uint8_t* __restrict__ image, const float* __restrict__ means,
                                     const float* __restrict__ stds, T* __restrict__ to, int channels) {
  const int width = augmented.width;
  const Taps row = taps_of(y, draw.box.height, augmented.height);
  for (int x : threads.columns(width)) {
    const bool cut = draw.cuts_row(y) && draw.cuts_col(x);
    const Taps col = taps_of(draw.mirrored(x, width), draw.box.width, width);
    for (int c = 0; c < channels; ++c)
      to[x * channels + c] =
          cut ? lib::from_f32<T>(0.0f)
              : normalized<T>(resized_pixel(image + c, draw.box, row, col, width, channels), means[c], stds[c]);
  }
}

/// A row of pixels after the other, so that no index is divided by the width.
template <class T, class Threads>
__device__ inline void write_augmented(const Threads& threads, const Augmented& augmented, std::int64_t sample,
                                       const std::uint8_t* __restrict__ x_row, const float* __restrict__ means,
                                       const float* __restrict__ stds, T* __restrict__ y_row, int channels) {
  const int height = augmented.height, width = augmented.width;
  const Draw draw = draw_of(augmented.what, augmented.seed, *augmented.epoch, sample, height, width);
  for (int y = threads.line; y < height; y += threads.lines) {
    T* to = y_row + y * width * channels;
    if (draw.box.height > 0) {
      write_resized(threads, draw, y, augmented, x_row, means, stds, to, channels);
      continue;
    }
    const std::uint8_t* from = x_row + draw.row_of(y, height) * width * channels;
    for (int x : threads.columns(width)) {
      const bool cut = draw.cuts_row(y) && draw.cuts_col(x);
      const int source = draw.col_of(x, width) * channels;
      for (int c = 0; c < channels; ++c)
        to[x * channels + c] = cut ? lib::from_f32<T>(0.0f) : normalized<T>(from[source + c], means[c], stds[c]);
    }
  }
}

/// A mixture with the partner's image.
template <class T, class Threads>
__device__ inline void write_mixed(const Threads& threads, const Augmented& augmented, const Mix& mix,
                                   std::int64_t sample, const std::uint8_t* __restrict__ x,
                                   const float* __restrict__ means, const float* __restrict__ stds,
                                   T* __restrict__ y_row, int channels) {
  const int height = augmented.height, width = augmented.width;
  const std::int64_t elements = std::int64_t{height} * width * channels;
  const Draw own = draw_of(augmented.what, augmented.seed, *augmented.epoch, sample, height, width);
  const Draw other = draw_of(augmented.what, augmented.seed, *augmented.epoch, mix.partner, height, width);
  const std::uint8_t* own_image = x + sample * elements;
  const std::uint8_t* other_image = x + mix.partner * elements;
  for (int row = threads.line; row < height; row += threads.lines)
    for (int col : threads.columns(width)) {
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

/// What a launch gathers, and from where.
template <class T>
struct Gather {
  const std::uint8_t* x;
  const std::int32_t* x_labels;
  std::int64_t samples;
  const std::int64_t* order;
  std::int64_t positions;
  std::int64_t* first;
  const float* means;
  const float* stds;
  T* y;
  std::int32_t* labels;
  std::int64_t batch;
  int elements, channels;
  Augmented augmented;

  explicit Gather(const Args& args)
      : x(args.x),
        x_labels(args.x_labels),
        samples(args.samples),
        order(args.order),
        positions(args.positions),
        first(args.first),
        means(args.mean),
        stds(args.std),
        y(static_cast<T*>(args.y)),
        labels(args.labels),
        batch(args.batch),
        elements(lib::narrow<int>("gather_batch", "elements", args.elements)),
        channels(lib::narrow<int>("gather_batch", "channels", args.channels)),
        augmented(args) {}

  /// Of a row of the batch; negative if there is none.
  __device__ std::int64_t sample(std::int64_t row) const {
    const std::int64_t position = *first + row;
    const std::int64_t sample = position >= 0 && position < positions ? order[position] : -1;
    return sample < samples ? sample : -1;
  }
};

enum class Mode : std::uint8_t { plain, augmented, mixed };

/// Calls visit.operator()<mode>().
template <class Visit>
void with_mode(const Augmentation& augment, Visit visit) {
  if (augment.mixes()) return visit.template operator()<Mode::mixed>();
  augment.any() ? visit.template operator()<Mode::augmented>() : visit.template operator()<Mode::plain>();
}

/// An image of the batch and its label; write_plain(from, to) writes one that is not augmented.
template <Mode kMode, class T, class Threads, class WritePlain>
__device__ inline void write_image(const Threads& threads, const Gather<T>& gather, std::int64_t row,
                                   const WritePlain& write_plain) {
  const Augmented& augmented = gather.augmented;
  const std::int64_t sample = gather.sample(row);
  T* const to = gather.y + row * gather.elements;
  if (threads.is_first) gather.labels[row] = sample < 0 ? -1 : gather.x_labels[sample];
  if (sample < 0) {
    for (int i : threads.range(gather.elements)) to[i] = lib::from_f32<T>(std::numeric_limits<float>::quiet_NaN());
    if (kMode == Mode::mixed && threads.is_first) {
      augmented.labels_b[row] = -1;
      augmented.weights_b[row] = 0.0f;
    }
    return;
  }
  const std::uint8_t* const from = gather.x + sample * gather.elements;
  if constexpr (kMode == Mode::mixed) {
    const Mix mix = mix_of(augmented.what, augmented.seed, *augmented.epoch, sample, gather.samples, augmented.height,
                           augmented.width, augmented.lambdas);
    if (threads.is_first) {
      augmented.labels_b[row] = gather.x_labels[mix.partner];
      augmented.weights_b[row] = mix.label_weight(augmented.height, augmented.width);
    }
    write_mixed(threads, augmented, mix, sample, gather.x, gather.means, gather.stds, to, gather.channels);
  } else if constexpr (kMode == Mode::augmented) {
    write_augmented(threads, augmented, sample, from, gather.means, gather.stds, to, gather.channels);
  } else {
    write_plain(from, to);
  }
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gather_batch
