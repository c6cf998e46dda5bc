// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace gradring::nn {

/// What forward leaves for backward: a stage's output, and what its plan saves.
struct StageBytes {
  std::size_t output = 0;
  std::size_t saved = 0;

  /// As they lie in memory, each at a multiple of kAlignment.
  std::size_t padded() const;
};

/// Where the stages of a program leave what backward wants, in one block of memory. Computed once, from sizes alone.
struct ActivationLayout {
  static constexpr std::size_t kAlignment = 256;  ///< what cudaMalloc gives, and more than any kernel asks for

  struct Place {
    std::size_t output = 0;  ///< in bytes, from the start of the block
    std::size_t saved = 0;
  };
  std::vector<Place> stages;
  std::size_t bytes = 0;
};

/// For a program that goes backward too, of segments that end with the stages `ends` (Checkpointing):
///
///   | last stage | end of segment 0 | end of segment 1 | inside of segment 1 |
///                                   | inside of segment 0 ... |
///
/// The ends stay until backward has passed them. All that lies inside a segment stays only while it is this segment's turn, behind the
/// ends up to this one, over what segments behind it have left: they are done, forward and backward alike. The last stage's
/// output, the logits, stays for whoever asks for it after the pass.
ActivationLayout lay_out_for_backward(std::span<const StageBytes> stages, std::span<const std::size_t> ends);

/// For a program that only goes forward: two outputs are alive at a time, and what plans save is wanted by nobody.
ActivationLayout lay_out_for_forward(std::span<const StageBytes> stages);

/// The sizes of two buffers that tensors use in turn, first[i] next to first[i + 1]: tensor i of n lies in buffer
/// (n - 1 - i) % 2.
std::array<std::size_t, 2> sizes_in_turn(std::span<const StageBytes> stages);

}  // namespace gradring::nn
