// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <vector>

#include "nn/backend/cpu/onednn_primitives.h"

namespace gradring::nn::onednn {

inline constexpr auto kConvolution = dnnl::algorithm::convolution_direct;

/// Tensors of a convolution: oneDNN's logical order NCHW and OIHW, memory in NHWC and OHWI.
struct Conv2dTensors {
  Dims w_dims;
  dnnl::memory::desc x, w, b, y;
  dnnl::memory::desc any_w;  // layout chosen by the primitive
  Dims strides, padding;
  std::int64_t positions;  // of an output image

  Conv2dTensors(const Conv2d& conv, const Shape& in, const Shape& out, std::int64_t batch)
      : w_dims{conv.out_channels, conv.in_channels, conv.kernel, conv.kernel},
        x(f32({batch, in[3], in[1], in[2]}, Tag::nhwc)),
        w(f32(w_dims, Tag::ohwi)),
        b(conv.bias ? f32({conv.out_channels}, Tag::x) : dnnl::memory::desc()),
        y(f32({batch, out[3], out[1], out[2]}, Tag::nhwc)),
        any_w(f32(w_dims, Tag::any)),
        strides{conv.stride, conv.stride},
        padding{conv.padding, conv.padding},
        positions(out[1] * out[2]) {}

  /// Whether vectors of 16 channels hold neither more nor less.
  bool fills_vectors() const { return w_dims[0] % 16 == 0 && w_dims[1] % 16 == 0; }
};

/// A forward convolution. For small images oneDNN 2 on AVX-512 divides weights into blocks of outputs, with which it
/// takes up to twice as long as with blocks of 16 inputs by 16 outputs.
inline dnnl::convolution_forward::primitive_desc describe_conv2d(const dnnl::engine& engine, const Conv2dTensors& t,
                                                                 bool relu) {
  const auto with = [&](const dnnl::memory::desc& w) {
    return describe<dnnl::convolution_forward>(engine, forward_attributes(relu), dnnl::prop_kind::forward_training,
                                               kConvolution, t.x, w, t.b, t.y, t.strides, t.padding, t.padding);
  };
  auto chosen = with(t.any_w);
  const bool small_blocks = std::string_view(chosen.impl_info_str()).starts_with("brgconv:avx512") &&
                            t.fills_vectors() && t.w_dims[0] > 16 &&
                            (t.positions <= 16 || chosen.weights_desc() == f32(t.w_dims, Tag::Ohwi16o));
  return small_blocks ? with(f32(t.w_dims, Tag::OIhw16i16o)) : chosen;
}

/// The gradient of a convolution's input as a forward convolution of dy, for stride 1:
///
///   dx = dy * w'     w'[i, o, row, column] = w[o, i, K - 1 - row, K - 1 - column]     padding K - 1 - padding
class TurnedConv2d {
 public:
  TurnedConv2d(Context& context, const NodeSpec& node, std::int64_t batch)
      : context_(context),
        t_(turned(std::get<Conv2d>(node.layer)), node.output, node.input, batch),
        desc_(describe_conv2d(context.engine, t_, false)),
        forward_(desc_),
        turned_w_(t_.w.get_size() / sizeof(float)),
        packed_(context,
                f32(Dims{t_.w_dims[1], t_.w_dims[0], t_.w_dims[2], t_.w_dims[3]}, Tag::ohwi).permute_axes({1, 0, 2, 3}),
                desc_.weights_desc()) {}

  /// Whether it is faster than the backward pass that oneDNN chose: that of oneDNN 2 on AVX-512, which leaves out the
  /// padding of images as small as the kernel.
  static bool pays(const Conv2d& conv, const Conv2dTensors& t,
                   const dnnl::convolution_backward_data::primitive_desc& backward) {
    return conv.stride == 1 && conv.padding < conv.kernel && conv.in_channels >= 16 && conv.out_channels % 16 == 0 &&
           t.positions > 9 && std::string_view(backward.impl_info_str()).starts_with("jit:avx512");
  }

  void run(const void* dy, const void* w, void* dx) {
    turn(static_cast<const float*>(w));
    context_.run(forward_, {{DNNL_ARG_SRC, context_.view(t_.x, dy)},
                            {DNNL_ARG_WEIGHTS, packed_.load(context_, turned_w_.data())},
                            {DNNL_ARG_DST, context_.view(t_.y, dx)}});
  }

 private:
  /// Reverses the positions of the kernel: on one thread, which takes less time than starting several.
  void turn(const float* w) {
    const std::int64_t in = t_.w_dims[0], taps = t_.w_dims[2] * t_.w_dims[3];
    for (std::int64_t o = 0; o < t_.w_dims[1]; ++o)
      for (std::int64_t tap = 0; tap < taps; ++tap)
        std::copy_n(w + (o * taps + tap) * in, in, turned_w_.data() + (o * taps + taps - 1 - tap) * in);
  }

  static Conv2d turned(Conv2d conv) {
    std::swap(conv.in_channels, conv.out_channels);
    conv.padding = conv.kernel - 1 - conv.padding;
    conv.bias = false;
    return conv;
  }

  Context& context_;
  Conv2dTensors t_;
  dnnl::convolution_forward::primitive_desc desc_;
  dnnl::convolution_forward forward_;
  std::vector<float> turned_w_;  // in memory as w
  Packed packed_;
};

/// The three passes of a convolution for one batch size; synchronous.
struct Conv2dPrimitives {
  using BackwardData = dnnl::convolution_backward_data;
  using BackwardWeights = dnnl::convolution_backward_weights;

  Context context;
  Conv2dTensors t;
  dnnl::convolution_forward::primitive_desc forward_desc;
  BackwardData::primitive_desc data_desc;
  BackwardWeights::primitive_desc weights_desc;
  dnnl::convolution_forward forward;
  BackwardData data;
  BackwardWeights weights;
  Packed forward_w, data_w, dw;
  std::unique_ptr<TurnedConv2d> turned;  // instead of `data`, or null

  Conv2dPrimitives(const NodeSpec& node, bool relu, std::int64_t batch)
      : t(std::get<Conv2d>(node.layer), node.input, node.output, batch),
        forward_desc(describe_conv2d(context.engine, t, relu)),
        data_desc(describe_backward<BackwardData>(context.engine, forward_desc, kConvolution, t.x, t.any_w, t.y,
                                                  t.strides, t.padding, t.padding)),
        weights_desc(describe_backward<BackwardWeights>(context.engine, forward_desc, kConvolution, t.x, t.any_w,
                                                        wants_gradient(node, 1) ? t.b : dnnl::memory::desc(), t.y,
                                                        t.strides, t.padding, t.padding)),
        forward(forward_desc),
        data(data_desc),
        weights(weights_desc),
        forward_w(context, t.w, forward_desc.weights_desc()),
        data_w(context, t.w, data_desc.weights_desc()),
        dw(context, t.w, weights_desc.diff_weights_desc()) {
    if (TurnedConv2d::pays(std::get<Conv2d>(node.layer), t, data_desc))
      turned = std::make_unique<TurnedConv2d>(context, node, batch);
  }

  void run_forward(const void* x_data, const void* w, const void* b, void* y_data) {
    context.run(forward, {{DNNL_ARG_SRC, context.view(t.x, x_data)},
                          {DNNL_ARG_WEIGHTS, forward_w.load(context, w)},
                          {DNNL_ARG_BIAS, context.view_or_none(t.b, b)},
                          {DNNL_ARG_DST, context.view(t.y, y_data)}});
  }

  void run_weights(const void* x, const void* dy, float* dw_data, float* db) {
    context.run(weights, {{DNNL_ARG_SRC, context.view(t.x, x)},
                          {DNNL_ARG_DIFF_DST, context.view(t.y, dy)},
                          {DNNL_ARG_DIFF_WEIGHTS, dw.target(context, dw_data)},
                          {DNNL_ARG_DIFF_BIAS, context.view_or_none(t.b, db)}});
    dw.store(context, dw_data);
    context.stream.wait();
  }

  void run_data(const void* dy, const void* w, void* dx) {
    if (turned) return turned->run(dy, w, dx);
    context.run(data, {{DNNL_ARG_DIFF_DST, context.view(t.y, dy)},
                       {DNNL_ARG_WEIGHTS, data_w.load(context, w)},
                       {DNNL_ARG_DIFF_SRC, context.view(t.x, dx)}});
  }
};

}  // namespace gradring::nn::onednn
