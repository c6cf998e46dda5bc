// SPDX-License-Identifier: Apache-2.0
#include "data/loader/normalize.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "kernels/base/error.h"
#include "kernels/lib/level_copies.h"

namespace gradring::data {

GRADRING_DECLARE_COPIES(NormalizeLoop, normalize_loop);

namespace {

/// Minimum length of means_, stds_ and inverse_stds_: long enough for vector units, short enough for L1.
constexpr std::size_t kRow = 768;

const NormalizeLoop& loop() {
  static const NormalizeLoop loop = GRADRING_COPY_TO_RUN(normalize_loop)();
  return loop;
}

void check_spec(const NormalizeSpec& spec, std::int64_t channels) {
  const auto fits = [channels](std::size_t count) {
    return count == 1 || static_cast<std::int64_t>(count) == channels;
  };
  check(channels >= 1 && fits(spec.mean.size()) && fits(spec.std.size()),
        "normalization has " + std::to_string(spec.mean.size()) + " means and " + std::to_string(spec.std.size()) +
            " stds, expected 1 or " + std::to_string(channels) + " (channels) of each");
  for (float std : spec.std) check(std > 0, "normalization has a std of " + std::to_string(std) + ", expected above 0");
}

}  // namespace

std::vector<float> for_channels(const std::vector<float>& values, std::int64_t channels) {
  return values.size() == 1 ? std::vector<float>(static_cast<std::size_t>(channels), values.front()) : values;
}

Normalize::Normalize(const NormalizeSpec& spec, std::int64_t channels) {
  check_spec(spec, channels);
  const std::vector<float> mean = for_channels(spec.mean, channels), std = for_channels(spec.std, channels);
  tables_.resize(static_cast<std::size_t>(channels));
  for (std::size_t channel = 0; channel < tables_.size(); ++channel)
    for (std::size_t value = 0; value < 256; ++value) {
      const float scaled = static_cast<float>(value) / 255.0f;
      tables_[channel][value] = (scaled - mean[channel]) / std[channel];
    }
  const std::size_t pixels = (kRow + tables_.size() - 1) / tables_.size();
  for (std::size_t i = 0; i < pixels * tables_.size(); ++i) {
    means_.push_back(mean[i % tables_.size()]);
    stds_.push_back(std[i % tables_.size()]);
    inverse_stds_.push_back(1.0f / stds_.back());
  }
  computed_ = loop().is_fast && loop_matches_tables();
}

void Normalize::check_sizes(std::size_t pixels, std::size_t out) const {
  if (pixels != out || pixels % tables_.size() != 0)
    throw InvalidArgument("cannot normalise " + std::to_string(pixels) + " bytes of " + std::to_string(tables_.size()) +
                          " channels into " + std::to_string(out) + " floats");
}

void Normalize::apply(std::span<const float> pixels, std::span<float> out) const {
  check_sizes(pixels.size(), out.size());
  for (std::size_t begin = 0; begin < pixels.size(); begin += means_.size())
    for (std::size_t i = 0; i < std::min(means_.size(), pixels.size() - begin); ++i)
      out[begin + i] = (pixels[begin + i] / 255.0f - means_[i]) / stds_[i];
}

void Normalize::apply(std::span<const std::uint8_t> pixels, std::span<float> out) const {
  check_sizes(pixels.size(), out.size());
  if (computed_)
    compute(pixels, out);
  else
    look_up(pixels, out);
}

void Normalize::look_up(std::span<const std::uint8_t> pixels, std::span<float> out) const {
  for (std::size_t channel = 0; channel < tables_.size(); ++channel)
    for (std::size_t i = channel; i < pixels.size(); i += tables_.size()) out[i] = tables_[channel][pixels[i]];
}

void Normalize::compute(std::span<const std::uint8_t> pixels, std::span<float> out) const {
  loop().run({.means = means_, .stds = stds_, .inverse_stds = inverse_stds_}, pixels, out);
}

bool Normalize::loop_matches_tables() const {
  std::vector<std::uint8_t> pixels(256 * tables_.size());
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i / tables_.size());
  std::vector<float> expected(pixels.size()), found(pixels.size());
  look_up(pixels, expected);
  compute(pixels, found);
  return std::memcmp(expected.data(), found.data(), expected.size() * sizeof(float)) == 0;
}

}  // namespace gradring::data
