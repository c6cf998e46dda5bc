// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nn/parameter/parameter.h"

namespace gradring::nn {

/// Where every parameter lies in an arena: one block of floats that holds all weights, or all gradients, or one of the
/// optimizer's states. The order is the one in which backward finishes gradients, so that a bucket is a slice.
///
///   | bucket 0: fc2.b fc2.w fc1.b fc1.w  pad | bucket 1: conv2.b conv2.w conv1.b conv1.w  riders pad |
///
/// Every tensor starts at a multiple of kAlignment elements. Buckets are padded with zeros to a multiple of `padding`
/// elements, so that each shards over any number of ranks. Riders are a few floats behind the last bucket's parameters
/// that travel with it (the step's loss, for example).
class ArenaLayout {
 public:
  static constexpr std::size_t kAlignment = 32;  ///< 128 bytes: what the widest loads of CPU and GPU ask for

  struct Slice {
    std::size_t offset = 0;  ///< in elements, from the start of the arena
    std::size_t elements = 0;
  };

  /// `buckets` lists indices into `parameters`, each exactly once.
  ///
  /// Errors    InvalidArgument if a parameter is missing or named twice, or padding is 0.
  ArenaLayout(std::span<const Parameter> parameters, std::span<const std::vector<int>> buckets, std::size_t padding,
              std::size_t riders = 0);

  std::size_t elements() const { return elements_; }
  int parameters() const { return static_cast<int>(parameters_.size()); }
  const Slice& parameter(int index) const { return parameters_.at(static_cast<std::size_t>(index)); }
  int bucket_of(int parameter) const { return bucket_of_.at(static_cast<std::size_t>(parameter)); }
  int buckets() const { return static_cast<int>(buckets_.size()); }
  const Slice& bucket(int index) const { return buckets_.at(static_cast<std::size_t>(index)); }
  const Slice& riders() const { return riders_; }

 private:
  std::vector<Slice> parameters_;
  std::vector<int> bucket_of_;
  std::vector<Slice> buckets_;
  Slice riders_;
  std::size_t elements_ = 0;
};

}  // namespace gradring::nn
