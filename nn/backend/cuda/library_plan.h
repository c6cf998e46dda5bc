// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "nn/backend/cuda/cuda_libraries.h"

namespace gradring::nn {

/// The passes of a layer for one batch size by a library, of those that will be asked for.
template <class Pass>
struct LibraryPasses {
  std::optional<Pass> forward;
  bool adds_bias = false;  ///< as part of forward
  std::optional<Pass> dgrad;
  std::optional<Pass> wgrad;

  bool complete(Backward backward) const {
    return forward && (wgrad || !wants_parameters(backward)) && (dgrad || !wants_dx(backward));
  }
};

/// Whether a convolution or a product adds a bias.
inline bool has_bias(const Layer& layer) {
  if (const auto* conv = std::get_if<Conv2d>(&layer)) return conv->bias;
  return std::get<Linear>(layer).bias;
}

/// Base of a library's plans of a layer with a weight and, if it has one, a bias. Our kernels compute what the library
/// lacks: the bias if it does not add it, and a ReLU right after the layer, since ours keeps a NaN and the libraries do not say that theirs do.
template <class Passes>
class LibraryPlan : public Plan {
 public:
  std::size_t nodes() const override { return relu_ ? 2 : 1; }
  /// Whether the library has every pass for the full batch.
  bool complete() { return passes_for(node_.input[0]).complete(node_.backward); }

 protected:
  /// For messages: "cuDNN computes this convolution", "--conv".
  struct Words {
    const char* library_computes;
    const char* option;
  };
  LibraryPlan(std::span<const NodeSpec> nodes, const HelperKernels& helpers, const Words& words)
      : node_(nodes.front()),
        helpers_(helpers),
        bias_(has_bias(node_.layer)),
        relu_(nodes.size() > 1 && std::holds_alternative<Relu>(nodes[1].layer)),
        words_(words) {}

  virtual Passes choose(std::int64_t batch) = 0;
  /// An epoch has two batch sizes, the full one and the short last one.
  ///
  /// Errors    DeviceError if a pass is missing for a smaller batch only.
  const Passes& passes_for(std::int64_t batch) {
    const auto known = passes_.find(batch);
    if (known != passes_.end()) return known->second;
    Passes passes = choose(batch);
    check<DeviceError>(batch == node_.input[0] || passes.complete(node_.backward), [&] {
      return std::string(words_.library_computes) + " for the full batch but not for " + std::to_string(batch) +
             " samples: name one of our variants with " + words_.option;
    });
    return passes_.emplace(batch, std::move(passes)).first->second;
  }

  void enqueue_after_forward(kernels::Stream& stream, const ForwardPass& pass, bool adds_bias) const {
    if (bias_ && !adds_bias)
      helpers_.bias.add(stream, {.dtype = node_.dtype,
                                 .rows = rows(pass.batch),
                                 .channels = channels(),
                                 .x = pass.y,
                                 .bias = pass.parameters[1],
                                 .y = pass.y});
    if (relu_)
      helpers_.relu.forward(stream, {.dtype = node_.dtype, .x = pass.y, .y = pass.y, .elements = elements(pass.batch)});
  }
  /// `sums_bias`: the library computes the gradient of the bias.
  void enqueue_before_backward(kernels::Stream& stream, const BackwardPass& pass, bool sums_bias) const {
    if (relu_ && !pass.dy_is_masked)
      helpers_.relu.backward(
          stream, {.dtype = node_.dtype, .y = pass.y, .dy = pass.dy, .dx = pass.dy, .elements = elements(pass.batch)});
    if (bias_ && !sums_bias && pass.gradients[1])
      helpers_.bias.grad(stream, {.dtype = node_.dtype,
                                  .rows = rows(pass.batch),
                                  .channels = channels(),
                                  .dy = pass.dy,
                                  .db = pass.gradients[1]});
  }

  const NodeSpec node_;
  const HelperKernels helpers_;
  const bool bias_;

 private:
  std::int64_t channels() const { return node_.output[node_.output.rank() - 1]; }
  std::size_t elements(std::int64_t batch) const {
    return static_cast<std::size_t>(node_.output.with_batch(batch).elements());
  }
  std::int64_t rows(std::int64_t batch) const { return node_.output.with_batch(batch).elements() / channels(); }

  bool relu_;
  Words words_;
  std::map<std::int64_t, Passes> passes_;
};

}  // namespace gradring::nn
