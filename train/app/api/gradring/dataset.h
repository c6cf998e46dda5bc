// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gradring {
inline namespace v1 {

/// The size of each image of a data set, in pixels and bytes a pixel.
struct ImageShape {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;
};

/// Labelled images of one shape, for the caller to derive from.
///
/// fit() and evaluate() read each sample once, in order, from the calling thread, and keep a copy in memory: size() *
/// height * width * channels bytes. Training shuffles and normalizes that copy: y = (x / 255 - 0.5) / 0.5, or as
/// the option normalize says.
///
/// Ranks that are processes have a data set each; it must hold the same samples on all of them, which is checked.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// For metrics and messages: letters, digits, `-` and `_`.
  virtual std::string name() const { return "own-data"; }
  /// The number of samples, above 0.
  virtual std::int64_t size() const = 0;
  virtual ImageShape shape() const = 0;
  /// Labels are 0 .. classes() - 1; at most 256 classes.
  virtual int classes() const = 0;
  /// Writes sample `index`, 0 .. size() - 1, into `pixels`: [height, width, channels], row by row, black is 0 and white
  /// 255. All are 0 before.
  ///
  /// Returns   its label.
  virtual int read(std::int64_t index, std::span<std::uint8_t> pixels) const = 0;
  /// The names of the classes in the order of their labels, in UTF-8, each once, for checkpoints and what is exported from
  /// them; empty: "0", "1", ...
  virtual std::vector<std::string> class_names() const { return {}; }
};

}  // namespace v1
}  // namespace gradring
