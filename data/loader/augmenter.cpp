// SPDX-License-Identifier: Apache-2.0
#include "data/loader/augmenter.h"

#include <algorithm>
#include <cstddef>

#include "kernels/base/error.h"

namespace gradring::data {
namespace {

using kernels::gather_batch::kLambdas;
using kernels::gather_batch::kWholeWeight;
using kernels::gather_batch::sample_of;
using kernels::gather_batch::taps_of;

constexpr std::size_t kCacheLine = 64;

void prefetch_bytes(std::span<const std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += kCacheLine) __builtin_prefetch(bytes.data() + i);
}

}  // namespace

Augmenter::Augmenter(const Dataset& dataset, const Normalize& normalize, const EpochAugmentation& augmentation)
    : dataset_(dataset), normalize_(normalize), augmentation_(augmentation) {
  const kernels::Shape shape = dataset.shape();
  const Augmentation& what = augmentation.what;
  check_fits(what, shape);
  const std::size_t tables = (what.mixup > 0 ? 1 : 0) + (what.cutmix > 0 ? 1 : 0);
  check(augmentation.lambdas.size() == tables * kLambdas, "the table of lambdas is not that of the augmentation");
  check(augmentation.visits.empty() || std::ssize(augmentation.visits) == dataset.size(),
        "an epoch of mixtures has not as many visits as the dataset has samples");
  height_ = static_cast<int>(shape[0]);
  width_ = static_cast<int>(shape[1]);
  channels_ = static_cast<int>(shape[2]);
  const auto elements = static_cast<std::size_t>(shape.elements());
  if (what.any()) own_.resize(elements);
  if (what.mixes()) other_.resize(elements);
  if (what.mixup > 0) mixed_.resize(elements);
  if (what.area_max > 0) columns_.resize(static_cast<std::size_t>(width_));
}

Augmenter::Draw Augmenter::draw_of(std::int64_t visit) const {
  return kernels::gather_batch::draw_of(augmentation_.what, augmentation_.seed, augmentation_.epoch, visit, height_,
                                        width_);
}

Augmenter::Mix Augmenter::mix_of(std::int64_t visit) const {
  return kernels::gather_batch::mix_of(augmentation_.what, augmentation_.seed, augmentation_.epoch, visit,
                                       dataset_.size(), height_, width_, augmentation_.lambdas.data(),
                                       augmentation_.visits.data());
}

void Augmenter::prefetch(std::int64_t visit) const {
  prefetch_bytes(dataset_.pixels(sample_of(visit)));
  if (augmentation_.what.mixes()) prefetch_bytes(dataset_.pixels(sample_of(mix_of(visit).partner)));
}

MixedLabel Augmenter::write(std::int64_t visit, std::span<float> image) {
  const Sample found = dataset_.get(sample_of(visit));
  MixedLabel label{.label = found.label, .label_b = found.label};
  if (!augmentation_.what.any()) {
    normalize_.apply(found.pixels, image);
    return label;
  }
  const Draw draw = draw_of(visit);
  const Pixels own = shown(draw, found.pixels, own_);
  if (augmentation_.what.mixes()) {
    const Mix mix = mix_of(visit);
    write_mixture(mix, own, image);
    label.label_b = dataset_.label(sample_of(mix.partner));
    label.weight_b = mix.label_weight(height_, width_);
  } else {
    normalize_.apply(own, image);
  }
  cut_out(draw, image);
  return label;
}

Augmenter::Pixels Augmenter::shown(const Draw& draw, Pixels pixels, std::vector<std::uint8_t>& memory) {
  if (draw.box.height > 0) {
    crop_resized(draw, pixels, memory.data());
  } else if (draw.flip || draw.shift_y != 0 || draw.shift_x != 0) {
    crop(draw, pixels, memory.data());
  } else {
    return pixels;
  }
  return memory;
}

void Augmenter::crop(const Draw& draw, Pixels pixels, std::uint8_t* to) const {
  const auto channels = static_cast<std::size_t>(channels_);
  for (int y = 0; y < height_; ++y) {
    const std::uint8_t* row = pixels.data() + static_cast<std::size_t>(draw.row_of(y, height_) * width_) * channels;
    for (int x = 0; x < width_; ++x) {
      const std::uint8_t* from = row + static_cast<std::size_t>(draw.col_of(x, width_)) * channels;
      for (std::size_t c = 0; c < channels; ++c) *to++ = from[c];
    }
  }
}

void Augmenter::crop_resized(const Draw& draw, Pixels pixels, std::uint8_t* to) {
  for (int x = 0; x < width_; ++x)
    columns_[static_cast<std::size_t>(x)] = taps_of(draw.mirrored(x, width_), draw.box.width, width_);
  for (int y = 0; y < height_; ++y) {
    const kernels::gather_batch::Taps row = taps_of(y, draw.box.height, height_);
    for (const kernels::gather_batch::Taps& col : columns_)
      for (int c = 0; c < channels_; ++c)
        *to++ = kernels::gather_batch::resized_pixel(pixels.data() + c, draw.box, row, col, width_, channels_);
  }
}

void Augmenter::write_mixture(const Mix& mix, Pixels own, std::span<float> image) {
  const Pixels other = shown(draw_of(mix.partner), dataset_.pixels(sample_of(mix.partner)), other_);
  if (mix.weight == kWholeWeight) {
    paste(mix, own, other);
    return normalize_.apply(own_, image);
  }
  for (std::size_t i = 0; i < mixed_.size(); ++i) mixed_[i] = mix.of(own[i], other[i]);
  normalize_.apply(mixed_, image);
}

void Augmenter::paste(const Mix& mix, Pixels own, Pixels other) {
  if (own.data() != own_.data()) std::ranges::copy(own, own_.begin());
  for (int y = mix.box.top; y < mix.box.top + mix.box.height; ++y) {
    const auto begin = static_cast<std::size_t>((y * width_ + mix.box.left) * channels_);
    std::ranges::copy(other.subspan(begin, static_cast<std::size_t>(mix.box.width * channels_)),
                      own_.begin() + static_cast<std::ptrdiff_t>(begin));
  }
}

void Augmenter::cut_out(const Draw& draw, std::span<float> image) const {
  const auto width = static_cast<std::size_t>((draw.cut_right - draw.cut_left) * channels_);
  for (int y = draw.cut_top; y < draw.cut_bottom; ++y) {
    const auto begin = static_cast<std::size_t>((y * width_ + draw.cut_left) * channels_);
    std::ranges::fill(image.subspan(begin, width), 0.0f);
  }
}

}  // namespace gradring::data
