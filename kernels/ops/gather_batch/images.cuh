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

/// The arguments of a launch, and what kernels need of them.
template <class T>
struct Gather {
  Args args;
  T* y;
  int elements, channels;
  int height = 0, width = 0;  // of augmented images

  explicit Gather(const Args& given)
      : args(given),
        y(static_cast<T*>(given.y)),
        elements(lib::narrow<int>("gather_batch", "elements", given.elements)),
        channels(lib::narrow<int>("gather_batch", "channels", given.channels)) {
    if (!given.augment.any()) return;
    height = static_cast<int>(given.height());
    width = static_cast<int>(given.width);
  }

  /// The visit of a row of the batch; negative if its sample is missing.
  __device__ std::int64_t visit(std::int64_t row) const {
    const std::int64_t position = *args.first + row;
    const std::int64_t visit = position >= 0 && position < args.positions ? args.order[position] : -1;
    return sample_of(visit) < args.samples ? visit : -1;
  }
  __device__ const std::uint8_t* image(std::int64_t visit) const { return args.x + sample_of(visit) * elements; }
  __device__ Draw draw(std::int64_t visit) const {
    return draw_of(args.augment, args.seed, *args.epoch, visit, height, width);
  }
  __device__ T value(int pixel, int channel) const {
    return normalized<T>(static_cast<float>(pixel), args.mean[channel], args.std[channel]);
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
__device__ inline void write_resized(const Threads& threads, const Gather<T>& gather, const Draw& draw, int y,
                                     const std::uint8_t* __restrict__ image, T* __restrict__ to) {
  const int width = gather.width, channels = gather.channels;
  const Taps row = taps_of(y, draw.box.height, gather.height);
  for (int x : threads.columns(width)) {
    const bool cut = draw.cuts_row(y) && draw.cuts_col(x);
    const Taps col = taps_of(draw.mirrored(x, width), draw.box.width, width);
    for (int c = 0; c < channels; ++c)
      to[x * channels + c] =
          cut ? lib::from_f32<T>(0.0f) : gather.value(resized_pixel(image + c, draw.box, row, col, width, channels), c);
  }
}

/// A row of pixels after the other, so that no index is divided by the width.
template <class T, class Threads>
__device__ inline void write_augmented(const Threads& threads, const Gather<T>& gather, std::int64_t visit,
                                       T* __restrict__ y_row) {
  const int height = gather.height, width = gather.width, channels = gather.channels;
  const std::uint8_t* const image = gather.image(visit);
  const Draw draw = gather.draw(visit);
  for (int y = threads.line; y < height; y += threads.lines) {
    T* to = y_row + y * width * channels;
    if (draw.box.height > 0) {
      write_resized(threads, gather, draw, y, image, to);
      continue;
    }
    const std::uint8_t* from = image + draw.row_of(y, height) * width * channels;
    for (int x : threads.columns(width)) {
      const bool cut = draw.cuts_row(y) && draw.cuts_col(x);
      const int source = draw.col_of(x, width) * channels;
      for (int c = 0; c < channels; ++c)
        to[x * channels + c] = cut ? lib::from_f32<T>(0.0f) : gather.value(from[source + c], c);
    }
  }
}

/// A mixture with the partner's image.
template <class T, class Threads>
__device__ inline void write_mixed(const Threads& threads, const Gather<T>& gather, const Mix& mix, std::int64_t visit,
                                   T* __restrict__ y_row) {
  const int height = gather.height, width = gather.width, channels = gather.channels;
  const Draw own = gather.draw(visit), other = gather.draw(mix.partner);
  const std::uint8_t* const own_image = gather.image(visit);
  const std::uint8_t* const other_image = gather.image(mix.partner);
  for (int row = threads.line; row < height; row += threads.lines)
    for (int col : threads.columns(width)) {
      const bool cut = own.cuts_row(row) && own.cuts_col(col);
      const bool pasted = mix.shows_partner(row, col);
      for (int c = 0; c < channels; ++c) {
        const int b = shown_pixel(other_image + c, other, row, col, height, width, channels);
        const int a = pasted ? b : shown_pixel(own_image + c, own, row, col, height, width, channels);
        y_row[(row * width + col) * channels + c] =
            cut ? lib::from_f32<T>(0.0f) : normalized<T>(mix.of(a, b), gather.args.mean[c], gather.args.std[c]);
      }
    }
}

enum class Mode : std::uint8_t { plain, augmented, mixed };

/// Calls visit.operator()<mode>().
template <class Visit>
void with_mode(const Augmentation& augment, Visit visit) {
  if (augment.mixes()) return visit.template operator()<Mode::mixed>();
  augment.any() ? visit.template operator()<Mode::augmented>() : visit.template operator()<Mode::plain>();
}

/// Row `row` of the batch, the image of `visit` and its label; write_plain(from, to) writes one that is not augmented.
template <Mode kMode, class T, class Threads, class WritePlain>
__device__ inline void write_image(const Threads& threads, const Gather<T>& gather, std::int64_t row,
                                   std::int64_t visit, const WritePlain& write_plain) {
  const Args& args = gather.args;
  T* const to = gather.y + row * gather.elements;
  if (threads.is_first) args.labels[row] = visit < 0 ? -1 : args.x_labels[sample_of(visit)];
  if (visit < 0) {
    for (int i : threads.range(gather.elements)) to[i] = lib::from_f32<T>(std::numeric_limits<float>::quiet_NaN());
    if (kMode == Mode::mixed && threads.is_first) {
      args.labels_b[row] = -1;
      args.weights_b[row] = 0.0f;
    }
    return;
  }
  if constexpr (kMode == Mode::mixed) {
    const Mix mix = mix_of(args.augment, args.seed, *args.epoch, visit, args.samples, gather.height, gather.width,
                           args.lambdas, args.visits);
    if (threads.is_first) {
      args.labels_b[row] = args.x_labels[sample_of(mix.partner)];
      args.weights_b[row] = mix.label_weight(gather.height, gather.width);
    }
    write_mixed(threads, gather, mix, visit, to);
  } else if constexpr (kMode == Mode::augmented) {
    write_augmented(threads, gather, visit, to);
  } else {
    write_plain(gather.image(visit), to);
  }
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gather_batch
