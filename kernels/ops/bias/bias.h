// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/lib/partial_sums.h"
#include "kernels/lib/variant.h"

namespace gradring::kernels::bias {

/// Adds one number per channel: y[r,c] = x[r,c] + bias[c].
///
/// Shapes    x, y: [rows, channels], row-major, contiguous (rows = batch * height * width of an NHWC tensor);
///           bias: [channels]; rows, channels >= 0.
/// Types     f32, f16 or bf16, equal for x, bias and y; the sum is taken in f32 and rounded once.
/// Aliasing  y may be x.
/// Order     enqueued on the stream; returns at once. No elements: nothing happens.
/// Errors    InvalidArgument if an extent is negative, a pointer null, or the type none of the three.
/// Numerics  deterministic; one rounding per element.
/// Cost      reads and writes rows * channels * size_of(dtype) bytes.
/// Example   tests/kernels/ops/layers_test.cpp
struct AddArgs {
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  const void* x = nullptr;
  const void* bias = nullptr;
  void* y = nullptr;
};

/// The gradient of the bias, and of a ReLU after it:
///   db[c] = sum_r dx[r,c]  (+ db[c] if `accumulate`),   dx[r,c] = y[r,c] > 0 ? dy[r,c] : 0; without y, dx = dy
///
/// Shapes    dy, y, dx: [rows, channels]; db: [channels]. With no rows, db becomes 0 or stays as it is.
/// Types     dy, y and dx: f32, f16 or bf16, equal; db: f32; sums in f32.
/// Aliasing  dx may be dy. y is the output of the ReLU; null: without a ReLU; dx is then not written.
/// Errors    as for AddArgs.
/// Numerics  deterministic; dx exact; db's error below (rows / 256 + 256) * 2^-24 * sum_r |dx[r,c]|.
/// Cost      reads rows * channels * size_of(dtype) bytes, with y reads twice and writes once as many; one addition per
///           element.
struct GradArgs {
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  const void* dy = nullptr;
  float* db = nullptr;
  bool accumulate = false;
  void* workspace = nullptr;  ///< grad_workspace_bytes(channels) bytes, aligned to 64; null: rows in one piece
  PartialSums* partial_sums = nullptr;  ///< of db
  const void* y = nullptr;
  void* dx = nullptr;
};

/// Blocks of rows whose sums a variant keeps apart, at most: about as many as a GPU has multiprocessors.
inline constexpr std::int64_t kMostGradBlocks = 128;

constexpr std::size_t grad_workspace_bytes(std::int64_t channels) {
  return static_cast<std::size_t>(kMostGradBlocks * channels) * sizeof(float);
}

void check_args(const AddArgs& args);
void check_args(const GradArgs& args);
void reference_add(const AddArgs& args);
void reference_grad(const GradArgs& args);

struct Variant {
  std::string_view name;
  void (*add)(Stream&, const AddArgs&);
  void (*grad)(Stream&, const GradArgs&);
  bool (*supports)(const Device&, DType);  ///< where it is chosen
  bool (*computes)(DType) = nullptr;       ///< what it is right for on any device, if that is more
};

}  // namespace gradring::kernels::bias
