// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace gradring::data {

/// One mean and one standard deviation per channel, of pixels scaled to [0, 1]; a single one of each stands for all channels.
struct NormalizeSpec {
  std::vector<float> mean = {0.5f};
  std::vector<float> std = {0.5f};
};

/// Pixels to floats: y = (x / 255 - mean) / std.
///
/// Shapes    any number of pixels, channels innermost.
/// Threads   safe from any thread.
/// Errors    InvalidArgument if mean or std has neither one entry nor `channels`, or a std is not positive.
/// Numerics  the same bits as torchvision's ToTensor and Normalize: each of the three operations rounds to f32.
/// Cost      about a cycle a pixel or less; reads 1 byte and writes 4.
class Normalize {
 public:
  explicit Normalize(const NormalizeSpec& spec = {}, std::int64_t channels = 1);

  int channels() const { return static_cast<int>(tables_.size()); }
  /// Errors    InvalidArgument if sizes differ or are no multiple of channels().
  void apply(std::span<const std::uint8_t> pixels, std::span<float> out) const;

 private:
  /// The truth: what each of the 256 bytes becomes, per channel.
  using Table = std::array<float, 256>;

  void look_up(std::span<const std::uint8_t> pixels, std::span<float> out) const;
  void compute(std::span<const std::uint8_t> pixels, std::span<float> out) const;
  bool computes_what_the_tables_say() const;

  std::vector<Table> tables_;
  /// The numbers of whole pixels in a row, so that vector arithmetic meets channels as they lie in memory.
  std::vector<float> means_, stds_, inverse_stds_;
  bool computed_ = false;
};

}  // namespace gradring::data
