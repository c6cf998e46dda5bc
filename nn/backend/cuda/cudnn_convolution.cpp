// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cudnn.h"

namespace gradring::nn {
namespace {

using kernels::DType;
using kernels::conv2d::Geometry;

/// The convolution before its bias, which is not stored.
constexpr std::int64_t kTensorSum = 10;

std::string_view name_of(ConvPass pass) {
  switch (pass) {
    case ConvPass::forward: return "forward";
    case ConvPass::forward_bias: return "forward_bias";
    case ConvPass::dgrad: return "dgrad";
    case ConvPass::wgrad: return "wgrad";
  }
  return "?";
}

/// Strides for channels innermost.
CudnnExtents channels_last(const CudnnExtents& nchw) {
  const auto [n, c, h, w] = nchw;
  return {h * w * c, 1, w * c, c};
}

class GraphBuilder {
 public:
  GraphBuilder(const CudnnApi& api, const ConvProblem& problem) : api_(api), problem_(problem) {}

  CudnnDescriptor tensor(std::int64_t id, const CudnnExtents& extents, cudnnDataType_t type) const {
    return make_tensor(api_, {.id = id, .extents = extents, .type = type});
  }

  CudnnDescriptor x() const {
    const Geometry& g = problem_.geometry;
    return tensor(kTensorX, {g.batch, g.in_channels, g.in_height, g.in_width}, type());
  }
  /// As many channels as a group has inputs: that is how cuDNN knows of groups.
  CudnnDescriptor w(DType dtype) const {
    const Geometry& g = problem_.geometry;
    return tensor(kTensorW, {g.out_channels, g.group_inputs(), g.kernel_height, g.kernel_width}, cudnn_type(dtype));
  }
  CudnnDescriptor y() const { return tensor(kTensorY, output(), type()); }
  CudnnDescriptor b() const { return tensor(kTensorB, {1, problem_.geometry.out_channels, 1, 1}, type()); }
  CudnnDescriptor sum() const {
    return make_tensor(api_, {.id = kTensorSum, .extents = output(), .type = CUDNN_DATA_FLOAT, .is_virtual = true});
  }

  CudnnDescriptor convolution() const {
    const Geometry& g = problem_.geometry;
    const std::array<std::int64_t, 2> strides = {g.stride, g.stride};
    const std::array<std::int64_t, 2> padding = {g.padding, g.padding};
    const std::array<std::int64_t, 2> dilations = {1, 1};
    CudnnDescriptor descriptor(api_, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    descriptor.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
        .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
        .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2})
        .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides)
        .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, padding)
        .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, padding)
        .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations);
    descriptor.finalize();
    return descriptor;
  }

  CudnnDescriptor forward(const CudnnDescriptor& result) const {
    CudnnDescriptor operation(api_, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution())
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x())
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w(problem_.dtype))
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, result)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1.0f)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 0.0f);
    operation.finalize();
    return operation;
  }

  CudnnDescriptor dgrad() const {
    CudnnDescriptor operation(api_, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, convolution())
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, y())
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, w(problem_.dtype))
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, x())
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1.0f)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 0.0f);
    operation.finalize();
    return operation;
  }

  CudnnDescriptor wgrad() const {
    CudnnDescriptor operation(api_, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, convolution())
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, x())
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, y())
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, w(problem_.dw_dtype))
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT, 1.0f)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT, 0.0f);
    operation.finalize();
    return operation;
  }

  std::vector<CudnnDescriptor> operations() const {
    std::vector<CudnnDescriptor> all;
    switch (problem_.pass) {
      case ConvPass::forward: all.push_back(forward(y())); break;
      case ConvPass::dgrad: all.push_back(dgrad()); break;
      case ConvPass::wgrad: all.push_back(wgrad()); break;
      case ConvPass::forward_bias: {
        const CudnnDescriptor result = sum();
        all.push_back(forward(result));
        all.push_back(make_pointwise_add(api_, result, b(), y()));
      }
    }
    return all;
  }

 private:
  cudnnDataType_t type() const { return cudnn_type(problem_.dtype); }
  CudnnExtents output() const {
    const Geometry& g = problem_.geometry;
    return {g.batch, g.out_channels, g.out_height(), g.out_width()};
  }

  const CudnnApi& api_;
  const ConvProblem& problem_;
};

}  // namespace

std::string ConvProblem::key() const {
  std::string text = std::string(name_of(pass)) + " " + std::string(kernels::name_of(dtype));
  if (pass == ConvPass::wgrad) text += " dw " + std::string(kernels::name_of(dw_dtype));
  const auto append = [&text](std::string_view word, std::initializer_list<std::int64_t> numbers) {
    text += " " + std::string(word);
    for (const std::int64_t number : numbers) text += " " + std::to_string(number);
  };
  append("x", {geometry.batch, geometry.in_height, geometry.in_width, geometry.in_channels});
  append("w", {geometry.out_channels, geometry.kernel_height, geometry.kernel_width});
  append("stride", {geometry.stride});
  append("padding", {geometry.padding});
  if (geometry.groups > 1) append("groups", {geometry.groups});
  return text;
}

std::vector<ConvTensor> tensors_of(ConvPass pass) {
  if (pass == ConvPass::forward_bias) return {kTensorX, kTensorW, kTensorB, kTensorY};
  return {kTensorX, kTensorW, kTensorY};
}

cudnnDataType_t cudnn_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return CUDNN_DATA_FLOAT;
    case DType::f16: return CUDNN_DATA_HALF;
    case DType::bf16: return CUDNN_DATA_BFLOAT16;
    default:
      throw InvalidArgument("cuDNN does not compute in " + std::string(kernels::name_of(dtype)) +
                            ", expected f32, f16 or bf16");
  }
}

CudnnDescriptor make_tensor(const CudnnApi& api, const CudnnTensorSpec& spec) {
  CudnnDescriptor descriptor(api, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, spec.type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, spec.extents)
      .set(CUDNN_ATTR_TENSOR_STRIDES, channels_last(spec.extents))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, spec.id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kCudnnAlignment)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, spec.is_virtual);
  descriptor.finalize();
  return descriptor;
}

CudnnDescriptor make_pointwise_add(const CudnnApi& api, const CudnnDescriptor& x, const CudnnDescriptor& b,
                                   const CudnnDescriptor& y) {
  CudnnDescriptor description(api, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  description.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_ADD)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  description.finalize();
  CudnnDescriptor operation(api, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, description)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  operation.finalize();
  return operation;
}

CudnnDescriptor make_graph(const CudnnApi& api, cudnnHandle_t handle, std::span<const CudnnDescriptor> operations) {
  CudnnDescriptor graph(api, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations);
  if (handle) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  graph.finalize();
  return graph;
}

CudnnDescriptor make_graph(const CudnnApi& api, cudnnHandle_t handle, const ConvProblem& problem) {
  return make_graph(api, handle, GraphBuilder(api, problem).operations());
}

}  // namespace gradring::nn
