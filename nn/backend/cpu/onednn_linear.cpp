// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cpu/onednn_layers.h"
#include "nn/backend/cpu/onednn_plan.h"

namespace gradring::nn::onednn {
namespace {

using Forward = dnnl::inner_product_forward;
using BackwardData = dnnl::inner_product_backward_data;
using BackwardWeights = dnnl::inner_product_backward_weights;

/// Plain layouts throughout: the products pack their operands themselves, block by block.
struct LinearPrimitives {
  Context context;
  dnnl::memory::desc x, w, b, y;
  Forward::primitive_desc forward_desc;
  Forward forward;
  BackwardData data;
  BackwardWeights weights;

  LinearPrimitives(const NodeSpec& node, bool relu, std::int64_t batch)
      : LinearPrimitives(std::get<Linear>(node.layer), relu, batch) {}

  LinearPrimitives(const Linear& layer, bool relu, std::int64_t batch)
      : x(f32({batch, layer.in_features}, Tag::nc)),
        w(f32({layer.out_features, layer.in_features}, Tag::oi)),
        b(f32({layer.out_features}, Tag::x)),
        y(f32({batch, layer.out_features}, Tag::nc)),
        forward_desc(
            describe<Forward>(context.engine, forward_attributes(relu), dnnl::prop_kind::forward_training, x, w, b, y)),
        forward(forward_desc),
        data(describe_backward<BackwardData>(context.engine, forward_desc, x, w, y)),
        weights(describe_backward<BackwardWeights>(context.engine, forward_desc, x, w, b, y)) {}

  void run_forward(const void* x_data, const void* w_data, const void* b_data, void* y_data) {
    forward.execute(context.stream, {{DNNL_ARG_SRC, context.view(x, x_data)},
                                     {DNNL_ARG_WEIGHTS, context.view(w, w_data)},
                                     {DNNL_ARG_BIAS, context.view(b, b_data)},
                                     {DNNL_ARG_DST, context.view(y, y_data)}});
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

}  // namespace

std::unique_ptr<Plan> plan_linear(const NodeSpec& node, const kernels::relu::Variant* relu) {
  return std::make_unique<WeightedPlan<LinearPrimitives>>(node, relu);
}

}  // namespace gradring::nn::onednn
