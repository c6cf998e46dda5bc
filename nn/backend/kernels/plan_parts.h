// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/base/error.h"
#include "kernels/lib/variant.h"
#include "nn/backend/kernels/kernel_plans.h"

/// What the plans of convolutions and of linear layers share.
namespace gradring::nn {

/// The scratch memory of a layer's backward pass: `first` bytes, then the bias gradient's. Both may hold partial sums.
struct ScratchWithBias {
  std::size_t first;
  std::int64_t channels;

  static bool wants_bias(const BackwardPass& pass) { return pass.gradients.size() > 1 && pass.gradients[1]; }
  std::size_t offset() const { return (first + 63) / 64 * 64; }
  std::size_t bytes() const { return offset() + kernels::bias::grad_workspace_bytes(channels); }
  /// The gradient of the bias, db, if it is wanted. `masks`: first makes dy that before the plan's ReLU.
  void enqueue_bias(kernels::Stream& stream, const kernels::bias::Variant& bias, const BackwardPass& pass,
                    kernels::DType dtype, std::int64_t rows, bool masks = false) const {
    if (!wants_bias(pass)) return;
    bias.grad(stream, {.dtype = dtype,
                       .rows = rows,
                       .channels = channels,
                       .dy = pass.dy,
                       .db = pass.gradients[1],
                       .workspace = pass.partial_sums.workspace_or(pass.workspace) + offset(),
                       .partial_sums = pass.partial_sums.list,
                       .y = masks ? pass.y : nullptr,
                       .dx = pass.dy});
  }
};

/// The variant of that name, or the best one for auto.
template <class Variant>
const Variant& choose_variant(std::span<const Variant> table, const std::string& name, const kernels::Device& device,
                              kernels::DType dtype) {
  if (name == kAuto) return kernels::pick_variant(table, device, dtype);
  const Variant& named = kernels::find_variant(table, name);
  if (kernels::can_run(named, device, dtype)) return named;
  throw InvalidArgument("variant '" + name + "' does not support " + std::string(kernels::name_of(dtype)) + " on " +
                        device.id().to_string() + ": name another, or auto");
}

/// Whether the second node is a ReLU.
inline bool has_relu(std::span<const NodeSpec> nodes) {
  return nodes.size() > 1 && std::holds_alternative<Relu>(nodes[1].layer);
}

}  // namespace gradring::nn
