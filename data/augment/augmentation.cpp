// SPDX-License-Identifier: Apache-2.0
#include "data/augment/augmentation.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <set>

#include "kernels/base/error.h"
#include "kernels/base/in_quotes.h"
#include "kernels/base/nearest_name.h"

namespace gradring::data {
namespace {

using kernels::gather_batch::Flip;

constexpr int kMostPixels = 1 << 16;
constexpr int kLeastArea = 800;  // torchvision's scale of (0.08, 1)

[[noreturn]] void fail(std::string_view word) {
  static constexpr std::string_view kNames[] = {"crop", "resized-crop", "flip", "cutout"};
  throw InvalidArgument("unknown augmentation " + in_quotes(word) +
                        ": expected a list of flip, flip=alternating, crop=PAD, resized-crop[=MIN:MAX] and "
                        "cutout=SIZE, such as crop=4,flip,cutout=8." +
                        did_you_mean(word.substr(0, word.find('=')), kNames));
}

int pixels_of(std::string_view word, std::string_view value) {
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  check(error == std::errc() && end == value.data() + value.size() && number >= 1 && number <= kMostPixels, [&] {
    return "augmentation " + in_quotes(word) + ": expected a number of pixels in 1 to " + std::to_string(kMostPixels);
  });
  return number;
}

/// In 1 / kWholeArea; 0 for what is no area.
int area_of(std::string_view value) {
  double area = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), area);
  if (error != std::errc() || end != value.data() + value.size() || !(area > 0 && area <= 1)) return 0;
  return static_cast<int>(std::lround(area * Augmentation::kWholeArea));
}

void set_areas(Augmentation& augmentation, std::string_view word, std::string_view value) {
  const std::size_t colon = std::min(value.find(':'), value.size());
  augmentation.area_min = area_of(value.substr(0, colon));
  augmentation.area_max = area_of(value.substr(std::min(colon + 1, value.size())));
  check(augmentation.area_min > 0 && augmentation.area_min <= augmentation.area_max, [&] {
    return "augmentation " + in_quotes(word) + ": expected the least and the greatest part of the area, such as 0.08:1";
  });
}

std::string area_text(int area) {
  std::string text = std::to_string(Augmentation::kWholeArea + area);  // 10800: 0.08
  if (area == Augmentation::kWholeArea) return "1";
  text = "0." + text.substr(1);
  return text.substr(0, text.find_last_not_of('0') + 1);
}

void add(Augmentation& augmentation, std::string_view word) {
  const std::size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  if (word == "flip") {
    augmentation.flip = Flip::random;
  } else if (word == "flip=alternating") {
    augmentation.flip = Flip::alternating;
  } else if (word == "resized-crop") {
    augmentation.area_min = kLeastArea;
    augmentation.area_max = Augmentation::kWholeArea;
  } else if (name == "resized-crop") {
    set_areas(augmentation, word, value);
  } else if (name == "crop") {
    augmentation.crop = pixels_of(word, value);
  } else if (name == "cutout") {
    augmentation.cutout = pixels_of(word, value);
  } else {
    fail(word);
  }
}

}  // namespace

Augmentation parse_augmentation(std::string_view text) {
  Augmentation augmentation;
  if (text.empty() || text == "none") return augmentation;
  std::set<std::string_view> names;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    add(augmentation, word);
    const std::string_view name = word.substr(0, word.find('='));
    check(names.insert(name).second, [&] { return "augmentation '" + std::string(name) + "' is given twice"; });
    begin = end + 1;
  }
  check(augmentation.crop == 0 || augmentation.area_max == 0,
        "augmentation: crop and resized-crop exclude each other; remove one of them");
  return augmentation;
}

std::string text_of(const Augmentation& augmentation) {
  std::string text;
  const auto append = [&](const std::string& word) { text += (text.empty() ? "" : ",") + word; };
  if (augmentation.crop > 0) append("crop=" + std::to_string(augmentation.crop));
  if (augmentation.area_max > 0)
    append("resized-crop=" + area_text(augmentation.area_min) + ":" + area_text(augmentation.area_max));
  if (augmentation.flip != Flip::none) append(augmentation.flip == Flip::random ? "flip" : "flip=alternating");
  if (augmentation.cutout > 0) append("cutout=" + std::to_string(augmentation.cutout));
  return text.empty() ? "none" : text;
}

void check_fits(const Augmentation& augmentation, const kernels::Shape& shape) {
  const char* problem = kernels::gather_batch::problem_of(augmentation, shape[0], shape[1]);
  check(problem == nullptr, [&] {
    return "augmentation '" + text_of(augmentation) + "' for images of " + std::to_string(shape[0]) + " x " +
           std::to_string(shape[1]) + " pixels: " + problem;
  });
}

Augmenter::Augmenter(const EpochAugmentation& augmentation, const kernels::Shape& shape) : augmentation_(augmentation) {
  check_fits(augmentation.what, shape);
  height_ = static_cast<int>(shape[0]);
  width_ = static_cast<int>(shape[1]);
  channels_ = static_cast<int>(shape[2]);
  if (augmentation.what.any()) augmented_.resize(static_cast<std::size_t>(shape.elements()));
  if (augmentation.what.area_max > 0) columns_.resize(static_cast<std::size_t>(width_));
}

std::span<const std::uint8_t> Augmenter::crop_and_flip(std::int64_t sample, std::span<const std::uint8_t> pixels) {
  if (!augmentation_.what.any()) return pixels;
  draw_ = kernels::gather_batch::draw_of(augmentation_.what, augmentation_.seed, augmentation_.epoch, sample, height_,
                                         width_);
  if (draw_.box.height > 0) {
    crop_resized(pixels);
  } else if (draw_.flip || draw_.shift_y != 0 || draw_.shift_x != 0) {
    crop(pixels);
  } else {
    return pixels;
  }
  return augmented_;
}

void Augmenter::crop(std::span<const std::uint8_t> pixels) {
  const auto channels = static_cast<std::size_t>(channels_);
  std::uint8_t* to = augmented_.data();
  for (int y = 0; y < height_; ++y) {
    const std::uint8_t* row = pixels.data() + static_cast<std::size_t>(draw_.row_of(y, height_) * width_) * channels;
    for (int x = 0; x < width_; ++x) {
      const std::uint8_t* from = row + static_cast<std::size_t>(draw_.col_of(x, width_)) * channels;
      for (std::size_t c = 0; c < channels; ++c) *to++ = from[c];
    }
  }
}

void Augmenter::crop_resized(std::span<const std::uint8_t> pixels) {
  using kernels::gather_batch::taps_of;
  for (int x = 0; x < width_; ++x)
    columns_[static_cast<std::size_t>(x)] = taps_of(draw_.mirrored(x, width_), draw_.box.width, width_);
  std::uint8_t* to = augmented_.data();
  for (int y = 0; y < height_; ++y) {
    const kernels::gather_batch::Taps row = taps_of(y, draw_.box.height, height_);
    for (const kernels::gather_batch::Taps& col : columns_)
      for (int c = 0; c < channels_; ++c)
        *to++ = kernels::gather_batch::resized_pixel(pixels.data() + c, draw_.box, row, col, width_, channels_);
  }
}

void Augmenter::cut_out(std::span<float> normalized) const {
  const auto width = static_cast<std::size_t>((draw_.cut_right - draw_.cut_left) * channels_);
  for (int y = draw_.cut_top; y < draw_.cut_bottom; ++y) {
    const auto begin = static_cast<std::size_t>((y * width_ + draw_.cut_left) * channels_);
    std::ranges::fill(normalized.subspan(begin, width), 0.0f);
  }
}

}  // namespace gradring::data
