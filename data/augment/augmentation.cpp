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

constexpr int kMostNumber = 1 << 16;
constexpr int kLeastArea = 800;  // torchvision's scale of (0.08, 1)

/// A message for users, without a place in the source, which check() would add.
template <class Message>
void require(bool condition, Message message) {
  if (!condition) throw InvalidArgument(message());
}

[[noreturn]] void fail(std::string_view word) {
  static constexpr std::string_view kNames[] = {"crop", "resized-crop", "flip", "mixup", "cutmix", "cutout"};
  throw InvalidArgument("unknown augmentation " + in_quotes(word) +
                        ": expected a list of flip, flip=alternating, crop=PAD, resized-crop[=MIN:MAX], mixup=ALPHA, "
                        "cutmix=ALPHA and cutout=SIZE, such as crop=4,flip,cutout=8." +
                        did_you_mean(word.substr(0, word.find('=')), kNames));
}

std::string_view without_spaces_around(std::string_view word) {
  while (word.starts_with(' ')) word.remove_prefix(1);
  while (word.ends_with(' ')) word.remove_suffix(1);
  return word;
}

int pixels_of(std::string_view word, std::string_view value) {
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  require(error == std::errc() && end == value.data() + value.size() && number >= 1 && number <= kMostNumber, [&] {
    return "augmentation " + in_quotes(word) + ": expected a number of pixels in 1 to " + std::to_string(kMostNumber);
  });
  return number;
}

/// A number above 0 and at most `most`, in 1 / whole; 0 for another text.
int fraction_of(std::string_view value, int whole, double most) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || !(number > 0 && number <= most)) return 0;
  return static_cast<int>(std::lround(number * whole));
}

int area_of(std::string_view value) { return fraction_of(value, Augmentation::kWholeArea, 1); }

int alpha_of(std::string_view word, std::string_view value) {
  const int alpha = fraction_of(value, Augmentation::kWholeAlpha, 100);
  require(alpha > 0, [&] {
    return "augmentation " + in_quotes(word) +
           ": expected the alpha of a Beta distribution, 0.001 to 100, such as 0.2 for mixup or 1 for cutmix";
  });
  return alpha;
}

void set_areas(Augmentation& augmentation, std::string_view word, std::string_view value) {
  const std::size_t colon = std::min(value.find(':'), value.size());
  augmentation.area_min = area_of(value.substr(0, colon));
  augmentation.area_max = area_of(value.substr(std::min(colon + 1, value.size())));
  require(augmentation.area_min > 0 && augmentation.area_min <= augmentation.area_max, [&] {
    return "augmentation " + in_quotes(word) + ": expected the least and the greatest part of the area, such as 0.08:1";
  });
}

/// number / whole, for a whole of 10^n.
std::string fraction_text(int number, int whole) {
  std::string text = std::to_string(number / whole);
  const int rest = number % whole;
  if (rest == 0) return text;
  text += "." + std::to_string(whole + rest).substr(1);  // 10800 of 10000: 0.08
  return text.substr(0, text.find_last_not_of('0') + 1);
}

std::string area_text(int area) { return fraction_text(area, Augmentation::kWholeArea); }
std::string alpha_text(int alpha) { return fraction_text(alpha, Augmentation::kWholeAlpha); }

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
  } else if (name == "mixup") {
    augmentation.mixup = alpha_of(word, value);
  } else if (name == "cutmix") {
    augmentation.cutmix = alpha_of(word, value);
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
    const std::string_view word = without_spaces_around(text.substr(begin, end - begin));
    add(augmentation, word);
    const std::string_view name = word.substr(0, word.find('='));
    require(names.insert(name).second, [&] { return "augmentation '" + std::string(name) + "' is given twice"; });
    begin = end + 1;
  }
  require(augmentation.crop == 0 || augmentation.area_max == 0,
          [] { return "augmentation: crop and resized-crop exclude each other; remove one of them"; });
  return augmentation;
}

std::string text_of(const Augmentation& augmentation) {
  std::string text;
  const auto append = [&](const std::string& word) { text += (text.empty() ? "" : ",") + word; };
  if (augmentation.crop > 0) append("crop=" + std::to_string(augmentation.crop));
  if (augmentation.area_max > 0)
    append("resized-crop=" + area_text(augmentation.area_min) + ":" + area_text(augmentation.area_max));
  if (augmentation.flip != Flip::none) append(augmentation.flip == Flip::random ? "flip" : "flip=alternating");
  if (augmentation.mixup > 0) append("mixup=" + alpha_text(augmentation.mixup));
  if (augmentation.cutmix > 0) append("cutmix=" + alpha_text(augmentation.cutmix));
  if (augmentation.cutout > 0) append("cutout=" + std::to_string(augmentation.cutout));
  return text.empty() ? "none" : text;
}

void check_fits(const Augmentation& augmentation, const kernels::Shape& shape) {
  const char* problem = kernels::gather_batch::problem_of(augmentation, shape[0], shape[1]);
  require(problem == nullptr, [&] {
    return "augmentation '" + text_of(augmentation) + "' for images of " + std::to_string(shape[0]) + " x " +
           std::to_string(shape[1]) + " pixels: " + problem + "; for these, crop is at most " +
           std::to_string(std::min(shape[0], shape[1]) - 1) + " and cutout at most " +
           std::to_string(2 * std::max(shape[0], shape[1]));
  });
}

}  // namespace gradring::data
