// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace gradring::data {

/// What repeats over the pixels of a row, channels innermost: all of one length.
struct NormalizeRow {
  std::span<const float> means;
  std::span<const float> stds;
  std::span<const float> inverse_stds;
};

/// The loop of Normalize, compiled once for each level of the instruction set (kernels/lib/level_copies.h).
struct NormalizeLoop {
  /// out[i] = (pixels[i] / 255 - mean) / std, with the bits of the divisions for all but a few stds.
  void (*run)(const NormalizeRow& row, std::span<const std::uint8_t> pixels, std::span<float> out);
  /// Whether it has fused multiply-adds: without, a table is faster.
  bool is_fast;
};

}  // namespace gradring::data
