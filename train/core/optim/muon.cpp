// SPDX-License-Identifier: Apache-2.0
#include "train/core/optim/muon.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "kernels/lib/variant.h"

namespace gradring::train {
namespace {

using kernels::DType;

// The odd polynomial of the Newton-Schulz iteration.
constexpr float kA = 3.4445f;
constexpr float kB = -4.7750f;
constexpr float kC = 2.0315f;

// After the results of gradient_statistics begins its workspace.
constexpr std::size_t kStatisticsResults = 64;

std::size_t elements_of(const WeightMatrix& matrix) { return static_cast<std::size_t>(matrix.rows * matrix.columns); }
std::int64_t side_of(const WeightMatrix& matrix) { return std::min(matrix.rows, matrix.columns); }
std::size_t square_of(const WeightMatrix& matrix) {
  return static_cast<std::size_t>(side_of(matrix) * side_of(matrix));
}

template <class Size>
std::size_t largest(std::span<const WeightMatrix> matrices, Size size) {
  std::size_t most = 0;
  for (const WeightMatrix& matrix : matrices) most = std::max(most, size(matrix));
  return most;
}

double factor_of(MuonScale scale, const WeightMatrix& matrix) {
  const auto rows = static_cast<double>(matrix.rows), columns = static_cast<double>(matrix.columns);
  switch (scale) {
    case MuonScale::original: return std::sqrt(std::max(1.0, rows / columns));
    case MuonScale::match_rms_adamw: return 0.2 * std::sqrt(std::max(rows, columns));
    case MuonScale::normalize: break;
  }
  return 1;
}

}  // namespace

Muon::Muon(const MuonParts& parts, const kernels::KernelSet& kernels, kernels::Device& device)
    : parts_(parts),
      kernel_(kernels::pick_variant(kernels.muon, device, DType::f32)),
      gemm_(kernels::pick_variant(kernels.gemm, device,
                                  device.id().kind == kernels::DeviceKind::cuda ? DType::bf16 : DType::f32)),
      statistics_(kernels::pick_variant(kernels.gradient_statistics, device, DType::f32)),
      dtype_(device.id().kind == kernels::DeviceKind::cuda ? DType::bf16 : DType::f32) {
  std::set<int> buckets;
  for (const WeightMatrix& matrix : parts.matrices) buckets.insert(matrix.bucket);
  buckets_.assign(buckets.begin(), buckets.end());
  const std::size_t elements = largest(parts.matrices, elements_of), square = largest(parts.matrices, square_of);
  x_ = device.allocate(elements * kernels::size_of(dtype_));
  products_ = device.allocate(elements * sizeof(float));
  a_ = device.allocate(square * kernels::size_of(dtype_));
  b_ = device.allocate(square * kernels::size_of(dtype_));
  workspace_ = device.allocate(gemm_.workspace_bytes);
  sums_ = device.allocate((1 + parts.matrices.size()) * sizeof(float));
  statistics_memory_ = device.allocate(kStatisticsResults + kernels::gradient_statistics::workspace_bytes(elements));
}

std::size_t Muon::bytes() const {
  return x_.size() + products_.size() + a_.size() + b_.size() + workspace_.size() + sums_.size() +
         statistics_memory_.size();
}

void Muon::enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices,
                        std::span<const ParameterGroup> groups, float* momentum, const StepState* state,
                        const float* learning_rates) {
  const auto options = [&](const UpdateSlice& slice) -> const OptimizerSpec& {
    return groups[static_cast<std::size_t>(slice.group)].options;
  };
  for (const int bucket : buckets_) {
    std::vector<UpdateSlice> own;
    std::ranges::copy_if(slices, std::back_inserter(own), [&](const UpdateSlice& slice) {
      return slice.matrix >= 0 && matrix_of(slice).bucket == bucket;
    });
    if (parts_.scale == MuonScale::normalize) enqueue_weight_norms(stream, bucket, own);
    for (const UpdateSlice& slice : own) {
      const bool has_momentum = options(slice).momentum != 0;
      kernel_.momentum(stream, {.elements = slice.elements,
                                .gradients = slice.gradients,
                                .buffer = has_momentum ? momentum + slice.state_offset : nullptr,
                                .update = within_bucket(slice),
                                .state = state,
                                .momentum = options(slice).momentum,
                                .nesterov = options(slice).nesterov});
    }
    parts_.buckets->enqueue_gather(bucket);
    for (const UpdateSlice& slice : own) {
      const WeightMatrix& matrix = matrix_of(slice);
      orthogonalize(stream, matrix, parts_.buckets->data(bucket) + matrix.offset);
      const bool normalizes = parts_.scale == MuonScale::normalize;
      kernel_.apply(stream,
                    {.dtype = dtype_,
                     .elements = slice.elements,
                     .weights = slice.weights,
                     .x = static_cast<const std::byte*>(x_.data()) + slice.matrix_offset * kernels::size_of(dtype_),
                     .state = state,
                     .learning_rate = learning_rates + slice.group,
                     .factor = factor_of(parts_.scale, matrix),
                     .weight_decay = options(slice).weight_decay,
                     .weight_sum_of_squares = normalizes ? sums_.as<float>() + 1 + slice.matrix : nullptr,
                     .norm = std::sqrt(static_cast<double>(matrix.rows)),
                     .copy_dtype = slice.copy.dtype,
                     .copy = slice.copy.data});
    }
  }
}

/// The norms of whole matrices of weights.
void Muon::enqueue_weight_norms(kernels::Stream& stream, int bucket, std::span<const UpdateSlice> slices) {
  for (const UpdateSlice& slice : slices)
    stream.enqueue_copy(within_bucket(slice), slice.weights, slice.elements * sizeof(float));
  parts_.buckets->enqueue_gather(bucket);
  for (const UpdateSlice& slice : slices) {
    const WeightMatrix& matrix = matrix_of(slice);
    enqueue_sum_of_squares(stream, parts_.buckets->data(bucket) + matrix.offset, elements_of(matrix),
                           sums_.as<float>() + 1 + slice.matrix);
  }
}

void Muon::enqueue_sum_of_squares(kernels::Stream& stream, const float* x, std::size_t elements, float* sum) {
  auto* const results = statistics_memory_.as<std::int64_t>();
  statistics_.run(stream, {.dtype = DType::f32,
                           .x = x,
                           .elements = elements,
                           .sum = sum,
                           .non_finite = reinterpret_cast<std::int32_t*>(results),
                           .first_non_finite = results + 1,
                           .tiny_count = results + 2,
                           .workspace = statistics_memory_.as<std::byte>() + kStatisticsResults});
}

/// Leaves X in x_.
void Muon::orthogonalize(kernels::Stream& stream, const WeightMatrix& matrix, const float* update) {
  const auto [rows, columns] = std::pair(matrix.rows, matrix.columns);
  const bool wide = rows <= columns;
  const std::int64_t side = side_of(matrix);
  void* const x = x_.data();
  enqueue_sum_of_squares(stream, update, elements_of(matrix), sums_.as<float>());
  kernel_.normalize(stream, {dtype_, elements_of(matrix), update, sums_.as<float>(), x});
  for (int step = 0; step < parts_.steps; ++step) {
    enqueue_product(stream, {.c_dtype = dtype_,
                             .m = side,
                             .n = side,
                             .k = std::max(rows, columns),
                             .transpose_a = !wide,
                             .transpose_b = wide,
                             .a = x,
                             .b = x,
                             .c = a_.data()});
    enqueue_product(stream, {.m = side, .n = side, .k = side, .a = a_.data(), .b = a_.data(), .c = products_.data()});
    kernel_.combine(stream, {dtype_, square_of(matrix), a_.data(), products_.as<float>(), b_.data(), kB, kC});
    enqueue_product(stream, {.m = rows,
                             .n = columns,
                             .k = side,
                             .a = wide ? b_.data() : x,
                             .b = wide ? x : b_.data(),
                             .c = products_.data()});
    kernel_.combine(stream, {dtype_, elements_of(matrix), x, products_.as<float>(), x, kA, 1});
  }
}

void Muon::enqueue_product(kernels::Stream& stream, kernels::gemm::Args product) {
  product.dtype = dtype_;
  product.workspace = workspace_.data();
  gemm_.run(stream, product);
}

}  // namespace gradring::train
