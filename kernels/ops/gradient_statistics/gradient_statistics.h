// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/lib/partial_sums.h"
#include "kernels/lib/variant.h"
#include "kernels/ops/step_state/step_state.h"

namespace gradring::kernels::gradient_statistics {

/// What gradient clipping, the loss scaler and metrics need to know of the gradients x:
///   *sum = sum_i x[i]^2        *non_finite = 1 if some x[i] is Inf or NaN, else 0
///   *first_non_finite = the least such i, or -1        *tiny_count = the number of |x[i]| < tiny, zeros included
///
/// In two steps: first each block of kBlock elements is reduced to two numbers, then these are reduced. A rank that has
/// only some blocks of an array reduces those, receives the numbers of the others, and adds up all in the same order.
///
/// Types     x: f32, f16 or bf16; the sum in f32.
/// Aliasing  nothing overlaps. Results, blocks, notes and workspace are device memory; results are overwritten.
/// Order     enqueued on the stream; returns at once. Zero elements: sum 0, flag 0, index -1, count 0.
/// Errors    InvalidArgument if a pointer is null (x, blocks and notes may be for zero elements) or the type is none of
///           the three.
/// Numerics  deterministic: on one kind of device, the order of the sum depends on `elements` alone, not on how many
///           multiprocessors or workers there are; zeros after the last element change no bit.
///           Relative error below (elements / 65536 + 300) * 2^-24. The sum may overflow to Inf while the flag stays 0;
///           with the flag, it is NaN. In a block with a non-finite element no tiny ones are counted.
/// Cost      reads elements * size_of(dtype) bytes; 2 floating-point operations per element.
/// Example   tests/kernels/ops/gradient_statistics_test.cpp
struct Args {
  DType dtype = DType::f32;
  const void* x = nullptr;
  std::size_t elements = 0;
  float tiny = 0;
  float* sum = nullptr;
  std::int32_t* non_finite = nullptr;
  std::int64_t* first_non_finite = nullptr;
  std::int64_t* tiny_count = nullptr;
  void* workspace = nullptr;  ///< workspace_bytes(elements) bytes, aligned to 16
};

/// Elements of a block: of the array, not of the grid.
inline constexpr std::size_t kBlock = 64;
constexpr std::size_t block_count(std::size_t elements) { return (elements + kBlock - 1) / kBlock; }
/// Where notes begin behind `blocks` sums, in numbers, so that they are aligned to 16 bytes as these are.
constexpr std::size_t notes_behind(std::size_t blocks) { return (blocks + 3) / 4 * 4; }
/// Scratch memory of one call: two numbers a block.
constexpr std::size_t workspace_bytes(std::size_t elements) {
  return 2 * notes_behind(block_count(elements)) * sizeof(float);
}

/// The first step. For block b, elements b * kBlock to (b + 1) * kBlock:
///
///                  blocks[b]                          notes[b]
///   all finite     sum of their squares, never NaN    number of tiny elements
///   otherwise      NaN                                -1 - (index within the block of the first non-finite element)
///
/// A note is a small whole number, so that 0 + note is exact: ranks may all-reduce them, with zeros for blocks of
/// others.
struct BlocksArgs {
  DType dtype = DType::f32;
  const void* x = nullptr;
  std::size_t elements = 0;
  float tiny = 0;
  float* blocks = nullptr;  ///< block_count(elements) of them
  float* notes = nullptr;   ///< as many
};

/// A contiguous part of the gradients of a step.
struct Run {
  float* x = nullptr;
  std::size_t elements = 0;
  std::size_t first_block = 0;  ///< the number of its first block among those of all gradients
};

/// Both steps for the f32 gradients of a step, and what frames them:
///   1. adds up the gradients that exist as partial sums, and writes them to where they belong in the runs
///   2. the first step, for the blocks of the runs
///   3. the second step, over `count` blocks: those of the runs, and what is in memory of others
///   4. step_state's `prepare`
///
/// Shapes    partial_sums: each within a run, from a multiple of kAlignment elements on; in any order.
/// Aliasing  as for Args; `arrivals` is a word of device memory: 0, and 0 again afterwards.
/// Errors    also InvalidArgument if a run has blocks beyond count, or partial sums are not within a run, or overlap.
/// Numerics  deterministic: the order of each sum follows from the arguments alone. Each gradient within (its number of
///           slices) * 2^-24 * sum of |partial sums|. The rest as for Args.
struct FinishArgs {
  std::span<const Run> runs;
  std::span<const PartialSum> partial_sums;
  float tiny = 0;
  float* blocks = nullptr;  ///< [count]
  float* notes = nullptr;   ///< [count]; accesses are wide if both are aligned to 16 bytes
  std::size_t count = 0;
  float* sum = nullptr;
  std::int32_t* non_finite = nullptr;
  std::int64_t* first_non_finite = nullptr;  ///< as if each block had kBlock elements
  std::int64_t* tiny_count = nullptr;
  step_state::PrepareArgs prepare{};  ///< a null state: not done; its sum_of_squares is null, or `sum`
  unsigned* arrivals = nullptr;
};

/// Of partial sums, in elements from the start of a run.
inline constexpr std::size_t kAlignment = 32;

void check_args(const Args& args);
void check_args(const BlocksArgs& args);
void check_args(const FinishArgs& args);
void reference_run(const Args& args);
void reference_finish(const FinishArgs& args);

/// `run` is both steps. `add_up` writes what partial sums add up to, and nothing else.
struct Variant {
  std::string_view name;
  void (*run)(Stream&, const Args&);
  void (*blocks)(Stream&, const BlocksArgs&);
  void (*finish)(Stream&, const FinishArgs&);
  void (*add_up)(Stream&, std::span<const PartialSum>);
  bool (*supports)(const Device&, DType);  ///< where it is chosen
  bool (*computes)(DType) = nullptr;       ///< what it is right for on any device, if that is more
};

}  // namespace gradring::kernels::gradient_statistics
