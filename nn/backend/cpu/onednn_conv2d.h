// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/backend/backend.h"
#include "nn/backend/cpu/onednn_support.h"

namespace gradring::nn::onednn {

/// The tensors of one convolution, in oneDNN's logical NCHW and OIHW order with our physical NHWC and OHWI.
struct Conv2dTensors {
  dnnl::memory::desc x, w, b, y;
  dnnl::memory::desc any_w;  // the layout is the primitive's choice
  Dims strides, padding;

  Conv2dTensors(const Conv2d& conv, const Shape& in, const Shape& out, std::int64_t batch)
      : x(f32({batch, in[3], in[1], in[2]}, Tag::nhwc)),
        w(f32({conv.out_channels, conv.in_channels, conv.kernel, conv.kernel}, Tag::ohwi)),
        b(f32({conv.out_channels}, Tag::x)),
        y(f32({batch, out[3], out[1], out[2]}, Tag::nhwc)),
        any_w(f32({conv.out_channels, conv.in_channels, conv.kernel, conv.kernel}, Tag::any)),
        strides{conv.stride, conv.stride},
        padding{conv.padding, conv.padding} {}
};

/// Its three passes for one batch size; each is done when the call returns.
struct Conv2dPrimitives {
  static constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
  using Forward = dnnl::convolution_forward;
  using BackwardData = dnnl::convolution_backward_data;
  using BackwardWeights = dnnl::convolution_backward_weights;

  Context context;
  Conv2dTensors t;
  Forward::primitive_desc forward_desc;
  BackwardData::primitive_desc data_desc;
  BackwardWeights::primitive_desc weights_desc;
  Forward forward;
  BackwardData data;
  BackwardWeights weights;
  Packed forward_w, data_w, dw;

  Conv2dPrimitives(const NodeSpec& node, bool relu, std::int64_t batch)
      : t(std::get<Conv2d>(node.layer), node.input, node.output, batch),
        forward_desc(describe<Forward>(context.engine, forward_attributes(relu), dnnl::prop_kind::forward_training,
                                       kAlgorithm, t.x, t.any_w, t.b, t.y, t.strides, t.padding, t.padding)),
        data_desc(describe_backward<BackwardData>(context.engine, forward_desc, kAlgorithm, t.x, t.any_w, t.y,
                                                  t.strides, t.padding, t.padding)),
        weights_desc(describe_backward<BackwardWeights>(context.engine, forward_desc, kAlgorithm, t.x, t.any_w, t.b,
                                                        t.y, t.strides, t.padding, t.padding)),
        forward(forward_desc),
        data(data_desc),
        weights(weights_desc),
        forward_w(context, t.w, forward_desc.weights_desc()),
        data_w(context, t.w, data_desc.weights_desc()),
        dw(context, t.w, weights_desc.diff_weights_desc()) {}

  void run_forward(const void* x_data, const void* w, const void* b, void* y_data) {
    forward.execute(context.stream, {{DNNL_ARG_SRC, context.view(t.x, x_data)},
                                     {DNNL_ARG_WEIGHTS, forward_w.load(context, w)},
                                     {DNNL_ARG_BIAS, context.view(t.b, b)},
                                     {DNNL_ARG_DST, context.view(t.y, y_data)}});
    context.stream.wait();
  }

  void run_weights(const void* x, const void* dy, float* dw_data, float* db) {
    weights.execute(context.stream, {{DNNL_ARG_SRC, context.view(t.x, x)},
                                     {DNNL_ARG_DIFF_DST, context.view(t.y, dy)},
                                     {DNNL_ARG_DIFF_WEIGHTS, dw.target(context, dw_data)},
                                     {DNNL_ARG_DIFF_BIAS, context.view(t.b, db)}});
    dw.store(context, dw_data);
    context.stream.wait();
  }

  void run_data(const void* dy, const void* w, void* dx) {
    data.execute(context.stream, {{DNNL_ARG_DIFF_DST, context.view(t.y, dy)},
                                  {DNNL_ARG_WEIGHTS, data_w.load(context, w)},
                                  {DNNL_ARG_DIFF_SRC, context.view(t.x, dx)}});
    context.stream.wait();
  }
};

}  // namespace gradring::nn::onednn
