// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "kernels/runtime/stream.h"

namespace gradring::kernels::sum_of_squares {

/// The squared length of an array, and whether it holds anything that is not a number: what gradient clipping and the
/// loss scaler ask of the gradients.
///   *sum = sum_i x[i]^2        *non_finite = 1 if some x[i] is infinite or NaN, else 0
///
/// It goes in two halves: elements are cut into blocks of kBlock, each of which gives one number, and then these are added
/// up. Who has only some blocks of an array computes theirs, gets the others' from whom has them, and adds up the same
/// numbers in the same order.
///
/// Types     x: f32, f16 or bf16; the sum in f32.
/// Aliasing  nothing overlaps. sum, non_finite, blocks and workspace are device memory; results are overwritten.
/// Order     enqueued on the stream; returns at once. Zero elements: sum 0, flag 0.
/// Errors    InvalidArgument if a pointer is null (x and blocks may be for zero elements) or the type is none of the three.
/// Numerics  deterministic: on one kind of device, the order of the sum depends on `elements` alone, not on how many
///           multiprocessors or workers there are; zeros behind the last element change no bit.
///           Relative error below (elements / 65536 + 300) * 2^-24. The sum may overflow to infinity while the flag
///           stays 0; with the flag, it is NaN.
/// Cost      reads elements * size_of(dtype) bytes; 2 floating-point operations per element.
/// Example   tests/kernels/sum_of_squares/sum_of_squares_test.cpp
struct Args {
  DType dtype = DType::f32;
  const void* x = nullptr;
  std::size_t elements = 0;
  float* sum = nullptr;
  std::int32_t* non_finite = nullptr;
  void* workspace = nullptr;  ///< workspace_bytes(elements) bytes, aligned to 16
};

/// Elements of a block.
inline constexpr std::size_t kBlock = 64;
constexpr std::size_t block_count(std::size_t elements) { return (elements + kBlock - 1) / kBlock; }
/// Scratch memory of one call: a number a block.
constexpr std::size_t workspace_bytes(std::size_t elements) { return block_count(elements) * sizeof(float); }

/// The first half: blocks[b] = the sum of the squares of elements b * kBlock to (b + 1) * kBlock, or NaN if one of them is not
/// finite. That is no loss: a sum of squares of numbers is never NaN.
struct BlocksArgs {
  DType dtype = DType::f32;
  const void* x = nullptr;
  std::size_t elements = 0;
  float* blocks = nullptr;  ///< block_count(elements) of them
};

/// The second half: adds up `count` blocks.
struct TotalArgs {
  const float* blocks = nullptr;
  std::size_t count = 0;
  float* sum = nullptr;
  std::int32_t* non_finite = nullptr;
};

/// Errors    InvalidArgument if `args` break the contract above. Every variant calls it before it launches.
void check_args(const Args& args);
void check_args(const BlocksArgs& args);
void check_args(const TotalArgs& args);

/// The truth: plain loops on the host, sums in double, run before the call returns.
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

inline namespace GRADRING_KERNEL_COPY {
/// The ladder, simplest first; never empty. One table per copy of the kernel text (see kernels/README.md).
std::span<const Variant> variants();
}  // namespace GRADRING_KERNEL_COPY

}  // namespace gradring::kernels::sum_of_squares
