// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/lib/variant.h"

namespace gradring::kernels::sum_of_squares {

/// The squared length of an array, and what in it is no number or hardly one: what gradient clipping and the loss
/// scaler ask of the gradients.
///   *sum = sum_i x[i]^2        *non_finite = 1 if some x[i] is infinite or NaN, else 0
///   *first_non_finite = the least such i, or -1        *tiny_count = how many |x[i]| < tiny, zeros too
///
/// It goes in two halves: elements are cut into blocks of kBlock, each of which gives two numbers, and then these are
/// added up. A rank with only some blocks of an array computes theirs, receives the others, and adds up the
/// same numbers in the same order.
///
/// Types     x: f32, f16 or bf16; the sum in f32.
/// Aliasing  nothing overlaps. Results, blocks, notes and workspace are device memory; results are overwritten.
/// Order     enqueued on the stream; returns at once. Zero elements: sum 0, flag 0, place -1, count 0.
/// Errors    InvalidArgument if a pointer is null (x, blocks and notes may be for zero elements) or the type is none of
///           the three.
/// Numerics  deterministic: on one kind of device, the order of the sum depends on `elements` alone, not on how many
///           multiprocessors or workers there are; zeros after the last element change no bit.
///           Relative error below (elements / 65536 + 300) * 2^-24. The sum may overflow to infinity while the flag
///           stays 0; with the flag, it is NaN, and what is not finite hides the tiny ones of its block.
/// Cost      reads elements * size_of(dtype) bytes; 2 floating-point operations per element.
/// Example   tests/kernels/ops/sum_of_squares_test.cpp
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

/// Elements of a block.
inline constexpr std::size_t kBlock = 64;
constexpr std::size_t block_count(std::size_t elements) { return (elements + kBlock - 1) / kBlock; }
/// Scratch memory of one call: two numbers a block.
constexpr std::size_t workspace_bytes(std::size_t elements) { return 2 * block_count(elements) * sizeof(float); }

/// The first half, of elements b * kBlock to (b + 1) * kBlock:
///   all finite:  blocks[b] = the sum of their squares, which is never NaN;  notes[b] = how many are tiny
///   otherwise:   blocks[b] = NaN;                                           notes[b] = -1 - the place of the first bad
/// one Places count from 0 within the block. A note is a small whole number, so that 0 + note is exact: ranks may add
/// up theirs with zeros for the others'.
struct BlocksArgs {
  DType dtype = DType::f32;
  const void* x = nullptr;
  std::size_t elements = 0;
  float tiny = 0;
  float* blocks = nullptr;  ///< block_count(elements) of them
  float* notes = nullptr;   ///< as many
};

/// The second half: adds up `count` blocks.
struct TotalArgs {
  const float* blocks = nullptr;
  const float* notes = nullptr;
  std::size_t count = 0;
  float* sum = nullptr;
  std::int32_t* non_finite = nullptr;
  std::int64_t* first_non_finite = nullptr;  ///< among all elements, of which each block but the last has kBlock
  std::int64_t* tiny_count = nullptr;
};

void check_args(const Args& args);
void check_args(const BlocksArgs& args);
void check_args(const TotalArgs& args);

namespace reference {
void run(const Args& args);
}  // namespace reference

/// One implementation in the table. `run` is both halves.
struct Variant {
  std::string_view name;
  void (*run)(Stream&, const Args&);
  void (*blocks)(Stream&, const BlocksArgs&);
  void (*total)(Stream&, const TotalArgs&);
  bool (*supports)(const Device&, DType);
};

}  // namespace gradring::kernels::sum_of_squares
