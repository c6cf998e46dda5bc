// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"

namespace gradring::nn {

/// The name for the best available kernel.
inline constexpr std::string_view kAuto = "auto";

/// Names of the kernels to use, or auto.
struct VariantChoice {
  std::string conv = std::string(kAuto);  ///< in conv2d; where that is fused with ReLU and pooling, in conv_relu_pool
  std::string gemm = std::string(kAuto);
};

/// VariantChoice::conv, split into the two tables of convolutions.
struct ConvChoice {
  std::string plain = std::string(kAuto);  ///< a name in conv2d, or auto
  std::string fused = std::string(kAuto);  ///< a name in conv_relu_pool, or auto; empty: nothing is fused

  /// A name in both tables selects both. A name in conv2d only turns fusing off; a name in conv_relu_pool only leaves
  /// the convolutions that cannot be fused to auto. "conv2d/direct" and "conv_relu_pool/direct" name the table, too.
  ///
  /// Errors    InvalidArgument if no table has the name.
  static ConvChoice of(const std::string& conv, const kernels::KernelSet& kernels);
};

/// Rejects names that are neither auto, nor the library's, nor in their table.
///
/// Errors    InvalidArgument: names the option, lists the accepted names, suggests the nearest.
void check_choice(const VariantChoice& choice, const kernels::KernelSet& kernels, std::string_view conv_library,
                  std::string_view gemm_library);

/// The choice of our kernels: auto where a library is named, for what that does not plan.
VariantChoice without_libraries(VariantChoice choice, std::string_view conv_library, std::string_view gemm_library);

/// The same geometry for another batch.
template <class Geometry>
Geometry with_batch(Geometry geometry, std::int64_t batch) {
  geometry.batch = batch;
  return geometry;
}

/// Geometry of a convolution node.
kernels::conv2d::Geometry conv2d_geometry(const NodeSpec& node);

/// Plans made of entries of the kernel tables, one node each or a few that a kernel fuses. Every backend is built from
/// them: `reference` from plain loops, `cpu` and `cuda` from the kernels, with a library's plans where those are
/// better.
///
/// Errors    InvalidArgument if a table has no variant of the chosen name, or none for the device and the type.
class KernelPlans {
 public:
  KernelPlans(const kernels::KernelSet& kernels, const kernels::Device& device, const VariantChoice& choice = {})
      : kernels_(kernels), device_(device), conv_(ConvChoice::of(choice.conv, kernels)), gemm_(choice.gemm) {}

  /// The first of a chain of nodes, with those after it that its kernel always includes.
  std::unique_ptr<Plan> plan(std::span<const NodeSpec> nodes) const;
  /// Of nodes that begin with a convolution and its batch normalization, by `inner`, a plan of without_batch_norm(nodes).
  std::unique_ptr<Plan> plan_folded(std::span<const NodeSpec> nodes, std::unique_ptr<Plan> inner) const;
  /// A plan of several nodes, or null if no kernel fuses them.
  std::unique_ptr<Plan> plan_fused(std::span<const NodeSpec> nodes) const;
  std::unique_ptr<LossPlan> plan_cross_entropy(const CrossEntropySpec& spec) const;
  /// The loss together with the node before it, or null if no kernel fuses them.
  std::unique_ptr<LossPlan> plan_fused_loss(const CrossEntropySpec& spec, const NodeSpec* last) const;

 private:
  /// One for each layer.
  std::unique_ptr<Plan> plan_of(const Conv2d& layer, std::span<const NodeSpec> nodes) const;
  std::unique_ptr<Plan> plan_of(const BatchNorm2d& layer, std::span<const NodeSpec> nodes) const;
  std::unique_ptr<Plan> plan_of(const Linear& layer, std::span<const NodeSpec> nodes) const;
  std::unique_ptr<Plan> plan_of(const Relu& layer, std::span<const NodeSpec> nodes) const;
  std::unique_ptr<Plan> plan_of(const Gelu& layer, std::span<const NodeSpec> nodes) const;
  std::unique_ptr<Plan> plan_of(const Silu& layer, std::span<const NodeSpec> nodes) const;
  std::unique_ptr<Plan> plan_of(const Scale& layer, std::span<const NodeSpec> nodes) const;
  std::unique_ptr<Plan> plan_of(const MaxPool2d& layer, std::span<const NodeSpec> nodes) const;
  std::unique_ptr<Plan> plan_of(const AvgPool2d& layer, std::span<const NodeSpec> nodes) const;
  std::unique_ptr<Plan> plan_of(const GlobalAvgPool2d& layer, std::span<const NodeSpec> nodes) const;
  std::unique_ptr<Plan> plan_of(const Dropout& layer, std::span<const NodeSpec> nodes) const;
  std::unique_ptr<Plan> plan_of(const Flatten& layer, std::span<const NodeSpec> nodes) const;
  std::unique_ptr<Plan> plan_of(const Add& layer, std::span<const NodeSpec> nodes) const;

  kernels::KernelSet kernels_;
  const kernels::Device& device_;
  ConvChoice conv_;
  std::string gemm_;
};

/// A backend of one kernel set without a library. With kernels::kernel_set(): our kernels, on a GPU or on a CPU's
/// execution model of it.
class KernelBackend : public Backend {
 public:
  KernelBackend(const kernels::KernelSet& kernels, const kernels::Device& device, std::string_view name = "kernels")
      : plans_(kernels, device), name_(name) {}

  std::string_view name() const override { return name_; }
  std::unique_ptr<Plan> plan(std::span<const NodeSpec> nodes) override;
  std::unique_ptr<LossPlan> plan_cross_entropy(const CrossEntropySpec& spec, const NodeSpec* last) override {
    if (auto plan = plans_.plan_fused_loss(spec, last)) return plan;
    return plans_.plan_cross_entropy(spec);
  }

 private:
  KernelPlans plans_;
  std::string_view name_;
};

/// The reference loops of every kernel, one node at a time: complete, slow, the ground truth of tests. CPU only.
class ReferenceBackend final : public KernelBackend {
 public:
  explicit ReferenceBackend(const kernels::Device& device);

  std::unique_ptr<Plan> plan(std::span<const NodeSpec> nodes) override { return KernelBackend::plan(nodes.first(1)); }
};

}  // namespace gradring::nn
