// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/runtime/shape.h"

namespace gradring::data {

/// Which part of a data set: the one to learn from, or the one to be judged by.
enum class Split : std::uint8_t { train, test };

constexpr std::string_view name_of(Split split) { return split == Split::train ? "train" : "test"; }

/// One image and its class. The pixels belong to the data set.
struct Sample {
  std::span<const std::uint8_t> pixels;
  int label = 0;
};

/// A fixed list of labelled images, all of one shape.
///
/// Shapes    shape() is that of one sample: height, width, channels; pixels are stored in that order.
/// Threads   every member function may be called from any thread.
/// Errors    InvalidArgument if an index is outside 0 .. size() - 1.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// What people call it: "mnist", "digits".
  virtual std::string_view name() const = 0;
  virtual std::int64_t size() const = 0;
  virtual kernels::Shape shape() const = 0;
  /// Labels are 0 .. classes() - 1.
  virtual int classes() const = 0;
  /// Valid as long as the data set.
  virtual std::span<const std::uint8_t> pixels(std::int64_t index) const = 0;
  virtual int label(std::int64_t index) const = 0;

  Sample get(std::int64_t index) const { return {pixels(index), label(index)}; }
};

}  // namespace gradring::data
