// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/datasets/dataset_facts.h"

namespace gradring::data {

/// The per-element constants of a row of pixels, channels innermost; all of one length.
struct NormalizeRow {
  std::span<const float> means;
  std::span<const float> stds;
  std::span<const float> inverse_stds;
};

/// The loop of Normalize, compiled once per instruction-set level (kernels/lib/level_copies.h) in normalize_loop.cpp.
struct NormalizeLoop {
  /// out[i] = (pixels[i] / 255 - mean) / std, bit-identical to divisions for all but a few stds.
  void (*run)(const NormalizeRow& row, std::span<const std::uint8_t> pixels, std::span<float> out);
  /// Whether it uses fused multiply-adds: without them, a table is faster.
  bool is_fast;
};

/// Mean and standard deviation of pixels scaled to [0, 1], one per channel or one for all.
struct NormalizeSpec {
  std::vector<float> mean = {0.5f};
  std::vector<float> std = {0.5f};
};

/// One value for each channel, where a single one may stand for all.
std::vector<float> for_channels(const std::vector<float>& values, std::int64_t channels);

/// What normalizes the samples of a dataset.
inline NormalizeSpec normalize_spec(const DatasetFacts& facts) { return {.mean = facts.mean, .std = facts.std}; }

/// Pixels to floats: y = (x / 255 - mean) / std.
///
/// Shapes    any number of pixels, channels innermost.
/// Threads   safe from any thread.
/// Errors    InvalidArgument if mean or std has neither one entry nor `channels`, or a std is not positive.
/// Numerics  bit-identical to torchvision's ToTensor and Normalize: each of the three operations rounds to f32. The
///           fast loop is used only if it matches the table of all 256 values, which the constructor checks.
/// Cost      at most about a cycle per pixel; reads 1 byte and writes 4.
class Normalize {
 public:
  explicit Normalize(const NormalizeSpec& spec = {}, std::int64_t channels = 1);

  int channels() const { return static_cast<int>(tables_.size()); }
  /// Errors    InvalidArgument if sizes differ or are not a multiple of channels().
  void apply(std::span<const std::uint8_t> pixels, std::span<float> out) const;
  /// The same of pixels in 0 to 255 that are no whole numbers, by divisions.
  void apply(std::span<const float> pixels, std::span<float> out) const;

 private:
  void check_sizes(std::size_t pixels, std::size_t out) const;
  /// The value of each of the 256 bytes.
  using Table = std::array<float, 256>;

  void look_up(std::span<const std::uint8_t> pixels, std::span<float> out) const;
  void compute(std::span<const std::uint8_t> pixels, std::span<float> out) const;
  bool loop_matches_tables() const;

  std::vector<Table> tables_;
  /// Repeated over a row of whole pixels, so that vector code reads them in step with the channels.
  std::vector<float> means_, stds_, inverse_stds_;
  bool computed_ = false;
};

}  // namespace gradring::data
