// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/linear_plan.h"

namespace gradring::nn {

using kernels::DType;

void LinearPlan::enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) {
  gemm_.run(stream, {.dtype = dtype_,  // y [n, out] = x [n, in] * w^T, w [out, in]
                     .c_dtype = dtype_,
                     .m = pass.batch,
                     .n = layer_.out_features,
                     .k = layer_.in_features,
                     .transpose_a = false,
                     .transpose_b = true,
                     .a = pass.x,
                     .b = pass.parameters[0],
                     .c = pass.y,
                     .accumulate = false,
                     .workspace = pass.workspace});
  bias_.add(stream, {.dtype = dtype_,
                     .rows = pass.batch,
                     .channels = layer_.out_features,
                     .x = pass.y,
                     .bias = pass.parameters[1],
                     .y = pass.y});
}

void LinearPlan::enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) {
  bias_.grad(stream, {.dtype = dtype_,
                      .rows = pass.batch,
                      .channels = layer_.out_features,
                      .dy = pass.dy,
                      .db = pass.gradients[1],
                      .accumulate = false});
  gemm_.run(stream, {.dtype = dtype_,  // dw [out, in] = dy^T * x, dy [n, out]
                     .c_dtype = DType::f32,
                     .m = layer_.out_features,
                     .n = layer_.in_features,
                     .k = pass.batch,
                     .transpose_a = true,
                     .transpose_b = false,
                     .a = pass.dy,
                     .b = pass.x,
                     .c = pass.gradients[0],
                     .accumulate = false,
                     .workspace = pass.workspace});
  if (!pass.dx) return;
  gemm_.run(stream, {.dtype = dtype_,  // dx [n, in] = dy * w
                     .c_dtype = dtype_,
                     .m = pass.batch,
                     .n = layer_.in_features,
                     .k = layer_.out_features,
                     .transpose_a = false,
                     .transpose_b = false,
                     .a = pass.dy,
                     .b = pass.parameters[0],
                     .c = pass.dx,
                     .accumulate = false,
                     .workspace = pass.workspace});
}

}  // namespace gradring::nn
