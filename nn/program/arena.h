// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/lib/partial_sums.h"
#include "kernels/runtime/dtype.h"
#include "nn/layers/parameter.h"

namespace gradring::nn {

/// Positions of all parameters in an arena: one block of floats with all weights, all gradients, or one state of the
/// optimizer. The order is that in which backward finishes gradients, so that a bucket is a slice.
///
///   | bucket 0: fc2.b fc2.w fc1.b fc1.w  pad | bucket 1: conv2.b conv2.w conv1.b conv1.w  scalars pad |
///
/// Every tensor starts at a multiple of kAlignment elements. Buckets are padded with zeros to a multiple of `padding`
/// elements, so that they shard over any number of ranks. A few piggybacked scalars (the step's loss, for example)
/// follow the last bucket's parameters and are reduced with it.
///
/// Frozen parameters are in no bucket, so neither gradients nor states of an optimizer have memory for them. They are
/// in a block of their own, which a slice is relative to.
class ArenaLayout {
 public:
  static constexpr std::size_t kAlignment = 32;  ///< 128 bytes, for the widest loads of CPU and GPU

  struct Slice {
    std::size_t offset = 0;  ///< in elements, from the start of the arena
    std::size_t elements = 0;
  };

  /// `buckets` lists indices into `parameters`, each exactly once; frozen ones may be missing.
  ///
  /// Errors    InvalidArgument if a parameter is missing or named twice, or padding is 0.
  ArenaLayout(std::span<const Parameter> parameters, std::span<const std::vector<int>> buckets, std::size_t padding,
              std::size_t piggyback = 0);

  std::size_t elements() const { return elements_; }
  /// Of the block of frozen parameters.
  std::size_t frozen_elements() const { return frozen_elements_; }
  int parameters() const { return static_cast<int>(parameters_.size()); }
  const Slice& parameter(int index) const { return parameters_.at(static_cast<std::size_t>(index)); }
  /// Whether a parameter is in no bucket.
  bool is_frozen(int parameter) const { return bucket_of(parameter) < 0; }
  /// Below 0: none.
  int bucket_of(int parameter) const { return bucket_of_.at(static_cast<std::size_t>(parameter)); }
  int buckets() const { return static_cast<int>(buckets_.size()); }
  const Slice& bucket(int index) const { return buckets_.at(static_cast<std::size_t>(index)); }
  const Slice& piggyback() const { return piggyback_; }
  /// of(bucket) for every bucket.
  template <class Of>
  auto each_bucket(const Of& of) const {
    std::vector<decltype(of(0))> all;
    for (int bucket = 0; bucket < buckets(); ++bucket) all.push_back(of(bucket));
    return all;
  }

  /// Elements between a bucket's start and one of its parameters.
  std::size_t offset_in_bucket(int index) const { return parameter(index).offset - bucket(bucket_of(index)).offset; }

 private:
  std::vector<Slice> parameters_;
  std::vector<int> bucket_of_;
  std::vector<Slice> buckets_;
  Slice piggyback_;
  std::size_t elements_ = 0;
  std::size_t frozen_elements_ = 0;
};

/// A layout and layout.elements() floats on the device. Owns neither: whoever allocated the memory (a device, or a
/// transport, so that peers reach gradients in place) keeps it alive.
struct Arena {
  const ArenaLayout& layout;
  float* data = nullptr;
  float* frozen = nullptr;  ///< the block of frozen parameters; null where there are none, as among gradients

  bool has(int index) const { return frozen || !layout.is_frozen(index); }
  float* parameter(int index) const {
    return (layout.is_frozen(index) ? frozen : data) + layout.parameter(index).offset;
  }
  std::span<float> bucket(int index) const {
    return {data + layout.bucket(index).offset, layout.bucket(index).elements};
  }
  std::span<float> piggyback() const { return {data + layout.piggyback().offset, layout.piggyback().elements}; }
};

/// An arena with all weights: the frozen ones, layout.frozen_elements() floats, follow the others.
inline Arena weights_arena(const ArenaLayout& layout, float* data) { return {layout, data, data + layout.elements()}; }

/// Where a backward pass writes gradients: every bucket of the layout, and the piggybacked scalars, may be anywhere.
/// Owns nothing.
struct Gradients {
  const ArenaLayout& layout;
  std::vector<float*> buckets;  ///< start of each
  float* piggyback = nullptr;
  kernels::PartialSums* partial_sums = nullptr;  ///< sums that backward may leave to its caller; null: all are complete

  float* parameter(int index) const {
    return buckets.at(static_cast<std::size_t>(layout.bucket_of(index))) + layout.offset_in_bucket(index);
  }
};

/// The gradients of an arena.
Gradients gradients_in(const Arena& arena);

/// All weights as plans read them, in the program's type: an f32 arena itself, a rounded copy, or separate buckets.
/// Owns nothing.
struct Weights {
  const ArenaLayout& layout;
  kernels::DType dtype = kernels::DType::f32;
  std::vector<const std::byte*> buckets;  ///< start of each
  const std::byte* frozen = nullptr;      ///< the block of frozen parameters
  float* buffers = nullptr;               ///< f32, as Program::buffer_layout says; null if the model has none

  const void* parameter(int index) const {
    if (layout.is_frozen(index)) return frozen + layout.parameter(index).offset * kernels::size_of(dtype);
    return buckets.at(static_cast<std::size_t>(layout.bucket_of(index))) +
           layout.offset_in_bucket(index) * kernels::size_of(dtype);
  }
};

/// Weights contiguous from `data`, as in weights_arena.
Weights weights_at(const ArenaLayout& layout, kernels::DType dtype, const void* data);

/// The weights of an f32 arena, read in place.
inline Weights weights_in(const Arena& arena) { return weights_at(arena.layout, kernels::DType::f32, arena.data); }

}  // namespace gradring::nn
