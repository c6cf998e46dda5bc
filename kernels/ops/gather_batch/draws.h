// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "kernels/runtime/philox.h"

namespace gradring::kernels::gather_batch {

enum class Flip : std::uint8_t {
  none,
  random,      ///< each visit of a sample with probability 1/2
  alternating  ///< a sample's first visit with probability 1/2 in epoch 0, then the other way in every odd epoch; within
               ///< an epoch, each further visit the other way
};

/// What may happen to an image of the training set, in this order: crop or resized crop, flip, mixup or cutmix with
/// another image that is cropped and flipped (mix.h), cutout.
struct Augmentation {
  static constexpr int kWholeArea = 10000;
  static constexpr int kWholeAlpha = 1000;
  static constexpr int kMostAlpha = 100 * kWholeAlpha;

  Flip flip = Flip::none;
  int area_min = 0, area_max = 0;  ///< of a resized crop, in 1 / kWholeArea of the image's; 0 and 0: no such crop
  int crop = 0;    ///< pixels of reflecting padding on each side, from which a window of the image's size is cut
  int cutout = 0;  ///< side of a square that becomes 0 after normalization, the mean

  int mixup = 0, cutmix = 0;  ///< alpha of lambda's distribution, in 1 / kWholeAlpha; 0: no such mixture. With both,
                              ///< each image is given one of them with probability 1/2

  constexpr bool any() const { return flip != Flip::none || crop != 0 || area_max != 0 || cutout != 0 || mixes(); }
  constexpr bool mixes() const { return mixup != 0 || cutmix != 0; }
};

/// What is wrong with this augmentation for images of that size; null: nothing.
constexpr const char* problem_of(const Augmentation& what, std::int64_t height, std::int64_t width) {
  const std::int64_t smaller = height < width ? height : width;
  if (what.crop < 0 || (what.crop > 0 && what.crop >= smaller))
    return "the padding of crop is not in 0 to the image's smaller side - 1, as reflecting padding must be";
  if (what.area_min < 0 || what.area_max > Augmentation::kWholeArea || what.area_min > what.area_max ||
      (what.area_max > 0 && what.area_min == 0))
    return "the areas of a resized crop are not a range within 0 to 1, without 0";
  if (what.crop > 0 && what.area_max > 0) return "crop and resized crop exclude each other";
  if (what.cutout < 0 || what.cutout > 2 * (height > width ? height : width))
    return "the side of cutout is not in 0 to twice the image's larger side";
  for (int alpha : {what.mixup, what.cutmix})
    if (alpha < 0 || alpha > Augmentation::kMostAlpha) return "alpha of mixup or cutmix is not in 0 to 100";
  if (height > (1 << 16) || width > (1 << 16)) return "the image is larger than 65536 x 65536 pixels";
  return nullptr;
}

inline namespace GRADRING_KERNEL_COPY {

/// A part of an image.
struct Box {
  int top = 0, left = 0, height = 0, width = 0;
};

/// The two neighbours that a pixel of an enlarged row is interpolated of, and their weights.
struct Taps {
  static constexpr int kBits = 22;

  int first = 0, second = 0;
  int first_weight = 1 << kBits, second_weight = 0;

  /// Of two bytes: sums below 2^31.
  constexpr std::uint8_t of(int a, int b) const {
    return static_cast<std::uint8_t>((a * first_weight + b * second_weight + (1 << (kBits - 1))) >> kBits);
  }
};

/// Of pixel i of `out` in a row that `in` <= out pixels are resized to: Pillow's bilinear filter, whose coefficients
/// round to 22 bits.
constexpr Taps taps_of(int i, int in, int out) {
  const std::int64_t offset = (std::int64_t{2} * i + 1) * in - out;  // in 1 / (2 out) pixels, from the first centre
  if (offset < 0) return {};
  const std::int64_t whole = std::int64_t{2} * out, rest = offset % whole;
  Taps taps;
  taps.first = taps.second = static_cast<int>(offset / whole);
  if (taps.first + 1 >= in) return taps;
  ++taps.second;
  taps.first_weight = static_cast<int>((((whole - rest) << Taps::kBits) + out) / whole);
  taps.second_weight = static_cast<int>(((rest << Taps::kBits) + out) / whole);
  return taps;
}

/// A visit of a sample in an epoch: the sample's index in the training set, and in the upper 32 bits the number of
/// earlier visits of that sample in the epoch. Visits differ in their random draws. A first visit is a plain index.
constexpr std::int64_t visit_of(std::int64_t sample, std::int64_t earlier_visits) {
  return earlier_visits << 32 | sample;
}
constexpr std::int64_t sample_of(std::int64_t visit) { return visit & 0xffffffff; }
constexpr std::int64_t earlier_visits_of(std::int64_t visit) { return visit >> 32; }

/// The augmentation of one visit of a sample.
struct Draw {
  bool flip = false;
  Box box;                                                       ///< of a resized crop; height 0: there is none
  int shift_y = 0, shift_x = 0;                                  ///< of the crop's window, in -crop .. crop
  int cut_top = 0, cut_bottom = 0, cut_left = 0, cut_right = 0;  ///< half-open ranges within the image

  /// The row of the image that is seen in row `y`; the column likewise, with the flip.
  constexpr int row_of(int y, int height) const { return reflected(y + shift_y, height); }
  constexpr int col_of(int x, int width) const { return reflected(mirrored(x, width) + shift_x, width); }
  /// Where column x of the crop lies before the flip.
  constexpr int mirrored(int x, int width) const { return flip ? width - 1 - x : x; }
  constexpr bool cuts_row(int y) const { return y >= cut_top && y < cut_bottom; }
  constexpr bool cuts_col(int x) const { return x >= cut_left && x < cut_right; }

 private:
  /// torch.nn.functional.pad(mode="reflect"): the edge itself is not repeated.
  static constexpr int reflected(int i, int size) { return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i; }
};

/// A pixel of the resized box, of one channel: `image` begins with that channel, and its pixels are `pixel_stride`
/// apart. Rows are resized first, then columns, with rounding to 8 bits after each, as in Pillow.
constexpr std::uint8_t resized_pixel(const std::uint8_t* image, const Box& box, const Taps& row, const Taps& col,
                                     int width, int pixel_stride) {
  const std::uint8_t* first = image + ((box.top + row.first) * width + box.left) * pixel_stride;
  const std::uint8_t* second = image + ((box.top + row.second) * width + box.left) * pixel_stride;
  return row.of(col.of(first[col.first * pixel_stride], first[col.second * pixel_stride]),
                col.of(second[col.first * pixel_stride], second[col.second * pixel_stride]));
}

/// The byte of one channel that an image shows at (y, x) after crop and flip; `image` begins with that channel.
constexpr std::uint8_t shown_pixel(const std::uint8_t* image, const Draw& draw, int y, int x, int height, int width,
                                   int pixel_stride) {
  if (draw.box.height > 0)
    return resized_pixel(image, draw.box, taps_of(y, draw.box.height, height),
                         taps_of(draw.mirrored(x, width), draw.box.width, width), width, pixel_stride);
  return image[(draw.row_of(y, height) * width + draw.col_of(x, width)) * pixel_stride];
}

/// Which numbers a call of Philox is for: the highest word of its counter. 2^30 keeps them apart from those of
/// generated data (below) and of dropout (from 2^31 on).
enum class DrawPurpose : std::uint32_t { position = 0x40000000u, cutout, first_flip, mix, resized_crop = 0x40000010u };

/// Four random words of a visit in an epoch.
constexpr std::array<std::uint32_t, 4> words_of(std::uint64_t seed, DrawPurpose purpose, std::int64_t epoch,
                                                std::int64_t visit, std::uint64_t attempt = 0) {
  return philox(seed, static_cast<std::uint64_t>(visit),
                (static_cast<std::uint64_t>(purpose) + attempt) << 32 | static_cast<std::uint32_t>(epoch));
}

/// Uniform in [0, count) for a count of at most 2^32, from the upper bits; off by less than count / 2^32.
template <class Count>
constexpr Count below(std::uint32_t word, Count count) {
  return static_cast<Count>(static_cast<std::uint64_t>(word) * static_cast<std::uint64_t>(count) >> 32);
}

/// The largest integer whose square is at most n < 2^63.
constexpr std::uint64_t integer_sqrt(std::uint64_t n) {
  std::uint64_t root = 0;
  for (std::uint64_t bit = 1ull << 31; bit != 0; bit >>= 1)
    if ((root | bit) * (root | bit) <= n) root |= bit;
  return root;
}

/// exp(x) for |x| <= 0.3, within 2^-20; x and the result in units of 2^-30.
constexpr std::int64_t small_exp(std::int64_t x) {
  constexpr std::int64_t kOne = 1 << 30;
  std::int64_t sum = kOne;
  for (int k = 5; k >= 1; --k) sum = kOne + x * sum / kOne / k;
  return sum;
}

/// An attempt of torchvision's RandomResizedCrop.get_params: its area is uniform, and so is the logarithm of its ratio
/// of width to height, between those of 3/4 and 4/3. Height 0: it does not fit into the image.
constexpr Box resized_box_of(const Augmentation& what, std::uint32_t area_word, std::uint32_t ratio_word,
                             std::uint32_t top_word, std::uint32_t left_word, int height, int width) {
  constexpr std::int64_t kLogOfFourThirds = 308896273;  // in 2^-30
  const auto range = static_cast<std::uint64_t>(what.area_max - what.area_min);
  const std::uint64_t area = (static_cast<std::uint64_t>(what.area_min) << 16) + (range * area_word >> 16);
  const std::uint64_t pixels = area / Augmentation::kWholeArea * static_cast<std::uint64_t>(height) *
                               static_cast<std::uint64_t>(width);  // in 2^-16
  const std::int64_t log_ratio = static_cast<std::int64_t>(2 * kLogOfFourThirds * ratio_word >> 32) - kLogOfFourThirds;
  const auto side_of = [&](std::int64_t log) {  // 2^-30 pixels times 2^-14 of ratio, and the root of it
    const auto ratio = static_cast<std::uint64_t>(small_exp(log) >> 16);
    return static_cast<int>((integer_sqrt(pixels * ratio) + (1 << 14)) >> 15);
  };
  Box box{.height = side_of(-log_ratio), .width = side_of(log_ratio)};
  if (box.height < 1 || box.width < 1 || box.height > height || box.width > width) return {};
  box.top = below(top_word, height - box.height + 1);
  box.left = below(left_word, width - box.width + 1);
  return box;
}

/// Where no attempt fits: the largest box of a ratio between 3/4 and 4/3, in the centre.
constexpr Box central_box_of(int height, int width) {
  Box box{.height = height, .width = width};
  if (4 * std::int64_t{width} < 3 * std::int64_t{height}) box.height = (8 * width + 3) / 6;
  if (3 * std::int64_t{width} > 4 * std::int64_t{height}) box.width = (8 * height + 3) / 6;
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

/// The augmentation of a visit: a pure function of seed, epoch and visit, in integers only, so that every device, rank,
/// thread and batch draws the same.
///   words = philox(seed, counter)      counter: visit (64 bits), epoch, purpose (32 bits each), lowest first
///   position   word 0: flip (its highest bit); 1: shift_y + crop, 2: shift_x + crop, each uniform in 0 .. 2 crop
///   cutout     word 0, 1: row and column of the square's centre, uniform in the image; what lies outside is ignored
///   first_flip word 0: the flip of the sample's first visit in epoch 0
///   resized_crop + n, attempt n of at most 10: word 0: area, 1: ratio, 2: top, 3: left
///
/// Errors    none; problem_of(what, height, width) must be null.
/// Source    torchvision.transforms.RandomCrop(size, padding, padding_mode="reflect"), RandomResizedCrop and
///           RandomHorizontalFlip; Pillow, src/libImaging/Resample.c; alternating flip: Jordan, "94% on CIFAR-10 in
///           3.29 seconds on a single GPU", 2024; DeVries, Taylor: "Improved regularization of convolutional neural
///           networks with cutout", 2017.
/// Example   tests/kernels/ops/draws_test.cpp
constexpr Draw draw_of(const Augmentation& what, std::uint64_t seed, std::int64_t epoch, std::int64_t visit, int height,
                       int width) {
  Draw draw;
  if (what.flip == Flip::random || what.crop > 0) {
    const auto words = words_of(seed, DrawPurpose::position, epoch, visit);
    draw.flip = what.flip == Flip::random && words[0] >> 31 != 0;
    draw.shift_y = below(words[1], 2 * what.crop + 1) - what.crop;
    draw.shift_x = below(words[2], 2 * what.crop + 1) - what.crop;
  }
  if (what.area_max > 0) {
    for (std::uint64_t attempt = 0; attempt < 10 && draw.box.height == 0; ++attempt) {
      const auto words = words_of(seed, DrawPurpose::resized_crop, epoch, visit, attempt);
      draw.box = resized_box_of(what, words[0], words[1], words[2], words[3], height, width);
    }
    if (draw.box.height == 0) draw.box = central_box_of(height, width);
  }
  if (what.flip == Flip::alternating) {
    const auto changes = static_cast<std::uint64_t>(epoch + earlier_visits_of(visit));
    draw.flip = (words_of(seed, DrawPurpose::first_flip, 0, sample_of(visit))[0] >> 31 ^ (changes & 1)) != 0;
  }
  if (what.cutout > 0) {
    const auto words = words_of(seed, DrawPurpose::cutout, epoch, visit);
    const int top = below(words[0], height) - what.cutout / 2;
    const int left = below(words[1], width) - what.cutout / 2;
    draw.cut_top = top < 0 ? 0 : top;
    draw.cut_left = left < 0 ? 0 : left;
    draw.cut_bottom = top + what.cutout > height ? height : top + what.cutout;
    draw.cut_right = left + what.cutout > width ? width : left + what.cutout;
  }
  return draw;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gather_batch
