// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace gradring::data {

/// One mean and one standard deviation per channel, of pixels scaled to [0, 1].
struct NormalizeSpec {
  std::vector<float> mean = {0.5f};
  std::vector<float> std = {0.5f};
};

/// Pixels to floats: y = (x / 255 - mean) / std, by a table of 256 entries per channel.
///
/// Shapes    any number of pixels, channels innermost.
/// Threads   safe from any thread.
/// Errors    InvalidArgument if mean and std differ in length, are empty, or a std is not positive.
/// Numerics  the same bits as torchvision's ToTensor and Normalize: each of the three operations rounds to f32.
class Normalize {
 public:
  explicit Normalize(const NormalizeSpec& spec = {});

  int channels() const { return static_cast<int>(tables_.size()); }
  /// Errors    InvalidArgument if sizes differ or are no multiple of channels().
  void apply(std::span<const std::uint8_t> pixels, std::span<float> out) const;

 private:
  std::vector<std::array<float, 256>> tables_;
};

}  // namespace gradring::data
