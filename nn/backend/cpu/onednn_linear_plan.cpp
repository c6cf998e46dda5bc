// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cpu/onednn_linear_plan.h"

#include "nn/backend/cpu/onednn_support.h"

namespace gradring::nn::onednn {
namespace {

using Forward = dnnl::inner_product_forward;
using BackwardData = dnnl::inner_product_backward_data;
using BackwardWeights = dnnl::inner_product_backward_weights;

}  // namespace

/// Plain layouts throughout: the products pack their operands themselves, block by block.
struct LinearPlan::Primitives {
  Context context;
  dnnl::memory::desc x, w, b, y;
  Forward::primitive_desc forward_desc;
  Forward forward;
  BackwardData data;
  BackwardWeights weights;

  Primitives(const Linear& layer, bool relu, std::int64_t batch)
      : x(f32({batch, layer.in_features}, Tag::nc)),
        w(f32({layer.out_features, layer.in_features}, Tag::oi)),
        b(f32({layer.out_features}, Tag::x)),
        y(f32({batch, layer.out_features}, Tag::nc)),
        forward_desc(
            describe<Forward>(context.engine, forward_attributes(relu), dnnl::prop_kind::forward_training, x, w, b, y)),
        forward(forward_desc),
        data(describe_backward<BackwardData>(context.engine, forward_desc, x, w, y)),
        weights(describe_backward<BackwardWeights>(context.engine, forward_desc, x, w, b, y)) {}

  void run_forward(const ForwardPass& pass, const void* w_data, const void* b_data) {
    forward.execute(context.stream, {{DNNL_ARG_SRC, context.view(x, pass.x)},
                                     {DNNL_ARG_WEIGHTS, context.view(w, w_data)},
                                     {DNNL_ARG_BIAS, context.view(b, b_data)},
                                     {DNNL_ARG_DST, context.view(y, pass.y)}});
    context.stream.wait();
  }

  void run_weights(const void* x_data, const void* dy, float* dw, float* db) {
    weights.execute(context.stream, {{DNNL_ARG_SRC, context.view(x, x_data)},
                                     {DNNL_ARG_DIFF_DST, context.view(y, dy)},
                                     {DNNL_ARG_DIFF_WEIGHTS, context.view(w, dw)},
                                     {DNNL_ARG_DIFF_BIAS, context.view(b, db)}});
    context.stream.wait();
  }

  void run_data(const void* dy, const void* w_data, void* dx) {
    data.execute(context.stream, {{DNNL_ARG_DIFF_DST, context.view(y, dy)},
                                  {DNNL_ARG_WEIGHTS, context.view(w, w_data)},
                                  {DNNL_ARG_DIFF_SRC, context.view(x, dx)}});
    context.stream.wait();
  }
};

LinearPlan::LinearPlan(const NodeSpec& node, const kernels::relu::Variant* relu) : node_(node), relu_(relu) {
  primitives_for(node.input[0]);
}

LinearPlan::~LinearPlan() = default;

LinearPlan::Primitives& LinearPlan::primitives_for(std::int64_t batch) {
  std::unique_ptr<Primitives>& made = primitives_[batch];
  if (!made)
    made = guarded("a product of " + node_.input.with_batch(batch).to_string(), [&] {
      return std::make_unique<Primitives>(std::get<Linear>(node_.layer), relu_ != nullptr, batch);
    });
  return *made;
}

void LinearPlan::enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) {
  Primitives& primitives = primitives_for(pass.batch);
  stream.enqueue([&primitives, pass, w = pass.parameters[0], b = pass.parameters[1]] {
    guarded("a product forward", [&] { primitives.run_forward(pass, w, b); });
  });
}

void LinearPlan::enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) {
  Primitives& primitives = primitives_for(pass.batch);
  if (relu_) mask_by_relu(stream, *relu_, node_.output, pass);
  stream.enqueue([&primitives, pass, w = pass.parameters[0], dw = pass.gradients[0], db = pass.gradients[1]] {
    guarded("a product backward", [&] {
      primitives.run_weights(pass.x, pass.dy, dw, db);
      if (pass.dx) primitives.run_data(pass.dy, w, pass.dx);
    });
  });
}

}  // namespace gradring::nn::onednn
