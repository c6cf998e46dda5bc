// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops/kernel_set.h"
#include "kernels/ops/step_state/step_state.h"
#include "kernels/runtime/device.h"
#include "train/core/optim/optimizer.h"

namespace gradring::train {

/// Computes the orthogonalized updates of matrices: Muon.
///
/// In each step, bucket by bucket: this rank averages the gradients that it has into its part of the bucket's memory; the
/// parts of all ranks are gathered; a rank that owns a part of a matrix orthogonalizes the whole matrix, and updates its
/// part of the weights. Every rank computes the same bits of a matrix, however it is divided.
///
///   U = momentum of the gradient,  X = U / |U|
///   `steps` times:  A = X X^T (or X^T X),  B = -4.775 A + 2.0315 A A,  X = 3.4445 X + B X (or X B)
///   W = (1 - lr * weight_decay) W - lr * factor * X      (MuonScale says the factor)
///
/// Memory    besides the momentum of its owner: for the largest matrix X in f32 (16 bits on a GPU) and its products in
///           f32, and two square matrices of its smaller side; the bucket's memory (WholeBuckets).
/// Numerics  products in bf16 with sums in f32 on a GPU, in f32 on a CPU; deterministic.
/// Source    Jordan and others: "Muon: an optimizer for hidden layers in neural networks", 2024; torch.optim.Muon.
/// Example   tests/train/core/optim/golden_steps_test.cpp
class Muon {
 public:
  /// parts.buckets must outlive it.
  Muon(const MuonParts& parts, const kernels::KernelSet& kernels, kernels::Device& device);

  /// Updates the slices that are parts of matrices. `momentum` is the optimizer's state, null without momentum.
  void enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices,
                    std::span<const ParameterGroup> groups, float* momentum,
                    const kernels::step_state::StepState* state, const float* learning_rates);
  std::size_t bytes() const;

 private:
  using StepState = kernels::step_state::StepState;

  void enqueue_weight_norms(kernels::Stream& stream, int bucket, std::span<const UpdateSlice> slices);
  void enqueue_sum_of_squares(kernels::Stream& stream, const float* x, std::size_t elements, float* sum);
  void orthogonalize(kernels::Stream& stream, const WeightMatrix& matrix, const float* update);
  void enqueue_product(kernels::Stream& stream, kernels::gemm::Args product);
  const WeightMatrix& matrix_of(const UpdateSlice& slice) const {
    return parts_.matrices[static_cast<std::size_t>(slice.matrix)];
  }
  /// Where a slice lies in the memory of its bucket.
  float* within_bucket(const UpdateSlice& slice) const {
    const WeightMatrix& matrix = matrix_of(slice);
    return parts_.buckets->data(matrix.bucket) + matrix.offset + slice.matrix_offset;
  }

  MuonParts parts_;
  kernels::muon::Variant kernel_;
  kernels::gemm::Variant gemm_;
  kernels::gradient_statistics::Variant statistics_;
  kernels::DType dtype_;
  std::vector<int> buckets_;  // with matrices, ascending
  kernels::Buffer x_;
  kernels::Buffer products_;
  kernels::Buffer a_;
  kernels::Buffer b_;
  kernels::Buffer workspace_;          // of products
  kernels::Buffer sums_;               // of squares: of the update, then of the weights of each matrix
  kernels::Buffer statistics_memory_;  // the other results of gradient_statistics, and its workspace
};

}  // namespace gradring::train
