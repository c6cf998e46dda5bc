// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace gradring::data {

/// How images become samples: the shorter side is resized to `resize` pixels, then the middle `size` x `size` cut out.
struct ImageSettings {
  std::int64_t size = 64;
  std::int64_t resize = 64;

  /// "64 x 64 pixels out of a shorter side of 64"; equal settings make equal pixels.
  std::string text() const;
};

/// How they are resized, for those who use a model elsewhere.
inline constexpr const char* kInterpolation = "bilinear with antialiasing, as Pillow's BILINEAR";

/// What is done about images that cannot be read.
enum class OnBroken : std::uint8_t { fail, skip };

}  // namespace gradring::data
