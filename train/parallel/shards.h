// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "nn/parameter/arena_layout.h"

namespace gradring::train {

/// Which weights a rank keeps the books of: of every bucket an equal shard.
///
///   arena, 2 shards    | bucket 0: shard 0 | shard 1 | bucket 1: shard 0 | shard 1 |
///   packed, of rank 1  | bucket 0's shard 1 | bucket 1's shard 1 |
///
/// What is kept of one's own shards alone (optimizer state, say) is packed. One shard is the whole: then every rank keeps
/// all, and packed memory lies as the arena does.
class Shards {
 public:
  using Slice = nn::ArenaLayout::Slice;

  /// Cuts each bucket into `count` shards, of which number `index` is this rank's own. The layout must outlive it.
  ///
  /// Errors    InvalidArgument if there is no such shard, or a bucket is not padded to a multiple of `count`.
  Shards(const nn::ArenaLayout& layout, int count, int index);

  const nn::ArenaLayout& layout() const { return layout_; }
  int count() const { return static_cast<int>(count_); }
  /// Whether nothing is shared out.
  bool whole() const { return count_ == 1; }

  /// This rank's shard of a bucket, counted from the bucket's start, from the arena's, and in packed memory.
  Slice in_bucket(int bucket) const;
  Slice in_arena(int bucket) const;
  Slice packed(int bucket) const;
  /// What of a parameter, with what lies between it and the next one, is in this rank's shard of a bucket.
  struct Part {
    int parameter = 0;
    Slice slice{};  ///< counted from the shard's start
  };
  /// The parts of a shard, none of them empty, in the order in which they lie there without a gap.
  std::vector<Part> parts(int bucket) const;
  /// Of all shards of one rank.
  std::size_t elements() const { return layout_.elements() / count_; }

  /// Whose shard holds an element of a bucket, counted from the bucket's start.
  int owner(int bucket, std::size_t element) const;

 private:
  const nn::ArenaLayout& layout_;
  std::size_t count_;
  std::size_t index_;
};

/// Where this rank's shard of each bucket lies.
using ShardPointers = std::vector<float*>;

/// In packed memory, shards.elements() floats from `data` on.
ShardPointers packed_shards(const Shards& shards, float* data);

}  // namespace gradring::train
