// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gradring::nn {

/// Activation checkpointing: how a program in training mode buys memory with time. Its stages are cut into segments. Forward
/// keeps what the last stage of each segment leaves; before backward comes to a segment, the others of it are computed once more.
struct Checkpointing {
  enum class Kind : std::uint8_t {
    none,       ///< everything is kept, nothing is computed twice
    segments,   ///< as many segments, cut where that needs the least memory
    automatic,  ///< as little is computed twice as the budget allows; without a budget, as little memory as can be
  };
  Kind kind = Kind::none;
  std::int64_t segments = 0;     ///< at most; fewer where more would not help
  std::size_t budget_bytes = 0;  ///< for what forward leaves for backward; 0: there is none
};

/// What a stage leaves for backward, and what a second forward pass of it would cost.
struct StageCost {
  std::size_t bytes = 0;
  double work = 0;
};

/// Segments, each named by its last stage, in order; the last one ends with the last stage.
struct Segmentation {
  std::vector<std::size_t> ends;
  std::size_t peak_bytes = 0;  ///< the most that is kept at any time
  double work = 0;             ///< of all that is computed twice
};

/// The best segmentation of a program's stages. The last segment is never computed twice: when backward begins, what it left
/// is still there.
///
/// Cost      of a search from the first stage on, which keeps what no other beginning beats in memory, work and number alike.
/// Errors    InvalidArgument if no segmentation fits the budget: says how much the least one needs.
Segmentation choose_segments(std::span<const StageCost> stages, const Checkpointing& checkpointing);

}  // namespace gradring::nn
