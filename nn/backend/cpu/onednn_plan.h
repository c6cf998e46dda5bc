// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>

#include "nn/backend/backend.h"
#include "nn/backend/cpu/onednn_support.h"

namespace gradring::nn::onednn {

/// A layer with weight and bias, and the ReLU behind it if there is one, by oneDNN. Backward masks dy by y > 0 in place.
///
/// `Primitives` is what oneDNN needs for one batch size; it is made from (node, relu follows, batch) and has run_forward,
/// run_weights and run_data. An epoch has two batch sizes, the full one and the short last one.
template <class Primitives>
class WeightedPlan final : public Plan {
 public:
  /// `relu` is the kernel that masks dy; null where no ReLU follows.
  WeightedPlan(const NodeSpec& node, const kernels::relu::Variant* relu) : node_(node), relu_(relu) {
    primitives_for(node.input[0]);
  }

  std::size_t nodes() const override { return relu_ ? 2 : 1; }
  std::size_t saved_bytes() const override { return 0; }
  std::size_t workspace_bytes() const override { return 0; }

  std::string description() const override { return "onednn"; }
  void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) override {
    Primitives& primitives = primitives_for(pass.batch);
    stream.enqueue([this, &primitives, pass, w = pass.parameters[0], b = pass.parameters[1]] {
      guarded(what("forward", pass.batch), [&] { primitives.run_forward(pass.x, w, b, pass.y); });
    });
  }

  void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) override {
    Primitives& primitives = primitives_for(pass.batch);
    if (relu_) mask_by_relu(stream, *relu_, node_.output, pass);
    stream.enqueue([this, &primitives, pass, w = pass.parameters[0], dw = pass.gradients[0], db = pass.gradients[1]] {
      guarded(what("backward", pass.batch), [&] {
        primitives.run_weights(pass.x, pass.dy, dw, db);
        if (pass.dx) primitives.run_data(pass.dy, w, pass.dx);
      });
    });
  }

 private:
  std::string what(std::string_view pass, std::int64_t batch) const {
    return std::string(kind_of(node_.layer)) + " " + std::string(pass) + " of " +
           node_.input.with_batch(batch).to_string();
  }

  Primitives& primitives_for(std::int64_t batch) {
    std::unique_ptr<Primitives>& made = primitives_[batch];
    if (!made)
      made =
          guarded(what("set-up", batch), [&] { return std::make_unique<Primitives>(node_, relu_ != nullptr, batch); });
    return *made;
  }

  NodeSpec node_;
  const kernels::relu::Variant* relu_;
  std::map<std::int64_t, std::unique_ptr<Primitives>> primitives_;
};

}  // namespace gradring::nn::onednn
