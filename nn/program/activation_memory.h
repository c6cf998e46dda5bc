// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gradring::nn {

/// Activation checkpointing: a training program trades time for memory. Its stages are cut into segments. Forward keeps
/// the output of each segment's last stage; backward recomputes the others before it reaches a segment.
struct Checkpointing {
  enum class Kind : std::uint8_t {
    none,       ///< everything is kept
    segments,   ///< `segments` segments, cut for the least memory
    automatic,  ///< the least recomputation that fits the budget; without a budget, the least memory
  };
  Kind kind = Kind::none;
  std::int64_t segments = 0;     ///< at most; fewer where more would not help
  std::size_t budget_bytes = 0;  ///< for activations kept for backward; 0: no budget
};

/// Memory that a stage leaves for backward, and the cost of recomputing it.
struct StageCost {
  std::size_t bytes = 0;
  double work = 0;
  std::size_t kept_bytes = 0;  ///< whatever the segments
  bool may_end = true;         ///< later stages read no output of earlier ones: a segment may end here
};

/// Segments, each named by its last stage, in order; the last one ends with the last stage.
struct Segmentation {
  std::vector<std::size_t> ends;
  std::size_t peak_bytes = 0;
  double work = 0;  ///< of all recomputation
};

/// Memory of the stages before the first one with a backward pass, which run forward only.
struct ForwardOnlyBytes {
  std::size_t kept = 0;  ///< outputs that later stages read
  std::size_t peak = 0;  ///< while they run, with those
};

/// The best segmentation of a program's stages with a backward pass, after those of `before`. The last segment is never
/// recomputed: its activations still exist when backward begins.
///
/// Cost      dynamic programming over the stages; keeps the beginnings that no other beats in memory, work and number.
/// Errors    InvalidArgument if no segmentation fits the budget; states the minimum.
Segmentation choose_segments(std::span<const StageCost> stages, const Checkpointing& checkpointing,
                             const ForwardOnlyBytes& before = {});

/// What forward leaves for backward: a stage's output, and what its plan saves and keeps (Plan).
struct StageBytes {
  std::size_t output = 0;
  std::size_t saved = 0;
  std::size_t kept = 0;

  /// Sum of what is recomputed, each rounded up to a multiple of ActivationLayout::kAlignment.
  std::size_t padded() const;
  std::size_t padded_kept() const;
};

/// Positions of the stages' outputs in one block of memory. Computed once, from sizes only.
struct ActivationLayout {
  static constexpr std::size_t kAlignment = 256;  ///< as cudaMalloc, and more than any kernel needs

  struct Offsets {
    std::size_t output = 0;  ///< in bytes, from the start of the block
    std::size_t saved = 0;
    std::size_t kept = 0;
  };
  std::vector<Offsets> stages;
  std::size_t bytes = 0;
};

/// The layout of a training program whose segments end with the stages `ends`:
///
///   | kept by plans | last stage | end of segment 0 | end of segment 1 | inside of segment 1 |
///                                                   | inside of segment 0 ... |
///
/// Ends stay until backward has passed them. The inside of a segment follows the ends up to its own and overwrites what
/// later segments left: those are finished, forward and backward. The last stage's output, the logits, stays after the
/// pass.
ActivationLayout lay_out_for_backward(std::span<const StageBytes> stages, std::span<const std::size_t> ends);

/// The same for a program whose stages before `first` have no backward pass: of these only outputs that stages from
/// `first` on read stay. The others are in memory that later stages overwrite. `ends` are numbers among all stages.
ActivationLayout lay_out_for_training(std::span<const StageBytes> stages, std::span<const std::size_t> last_readers,
                                      std::span<const std::size_t> ends, std::size_t first);

/// Of the stages before `first` in that layout.
ForwardOnlyBytes forward_only_bytes(std::span<const StageBytes> stages, std::span<const std::size_t> last_readers,
                                    std::size_t first);

/// The layout of an evaluation program: an output is kept until its last reader has run, and what plans save until they
/// have. `last_readers`: of each stage's output, stages.size() for the loss.
ActivationLayout lay_out_for_forward(std::span<const StageBytes> stages, std::span<const std::size_t> last_readers);

/// Memory that is needed from step `first` to step `last`, both included.
struct Lifetime {
  std::size_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

/// A batch cut into shards, the last of them with fewer samples: plans compute one at a time, so that the bits of a
/// shard do not depend on the others.
struct BatchShards {
  std::int64_t size = 0;  ///< samples, at most
  int count = 1;

  std::int64_t samples(std::int64_t batch, int shard) const {
    return std::clamp(batch - shard * size, std::int64_t{0}, size);
  }
  /// From one shard of a tensor to the next: aligned, so that all are computed alike.
  static std::size_t stride(std::size_t shard_bytes);
  /// Of the whole tensor.
  std::size_t bytes(std::size_t shard_bytes) const {
    return static_cast<std::size_t>(count - 1) * stride(shard_bytes) + shard_bytes;
  }
};

/// Positions in one block of memory, in which nothing overlaps that lives at the same time.
struct Placement {
  std::vector<std::size_t> offsets;  ///< multiples of ActivationLayout::kAlignment
  std::size_t bytes = 0;             ///< of the block
};

/// Places the largest first, each at the lowest free offset.
///
/// Source    Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020: greedy by size.
Placement assign_offsets(std::span<const Lifetime> blocks);

}  // namespace gradring::nn
