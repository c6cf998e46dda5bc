// SPDX-License-Identifier: Apache-2.0
#include "tests/nn/backend/cuda/fake_graph.h"

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>

#include "kernels/runtime/dtype.h"

namespace gradring::tests {
namespace {

using Operations = std::vector<std::shared_ptr<FakeDescriptor>>;

/// One tensor of a graph, where it lies, and how it is read and written.
class View {
 public:
  View(const FakeDescriptor& tensor, const FakeMemory& memory)
      : extents(tensor.all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides_(tensor.all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES)),
        type_(tensor.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        data_(memory.at(tensor.one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID))) {
    const auto alignment = tensor.one<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    if (reinterpret_cast<std::uintptr_t>(data_) % static_cast<std::uintptr_t>(alignment) != 0)
      throw std::runtime_error("a pointer is less aligned than was promised");
  }

  double get(std::array<std::int64_t, 4> at) const {
    const std::size_t i = offset(at);
    if (type_ == CUDNN_DATA_FLOAT) return static_cast<const float*>(data_)[i];
    if (type_ == CUDNN_DATA_HALF) return kernels::to_float(static_cast<const kernels::Half*>(data_)[i]);
    return kernels::to_float(static_cast<const kernels::BFloat16*>(data_)[i]);
  }
  void set(std::array<std::int64_t, 4> at, double value) {
    const std::size_t i = offset(at);
    const auto number = static_cast<float>(value);
    if (type_ == CUDNN_DATA_FLOAT) static_cast<float*>(data_)[i] = number;
    if (type_ == CUDNN_DATA_HALF) static_cast<kernels::Half*>(data_)[i] = kernels::to_half(number);
    if (type_ == CUDNN_DATA_BFLOAT16) static_cast<kernels::BFloat16*>(data_)[i] = kernels::to_bfloat16(number);
  }
  /// Every index, in order; also of sums that are kept in a vector beside the tensor.
  template <class Visit>
  void each(const Visit& visit) const {
    std::size_t i = 0;
    for (std::int64_t a = 0; a < extents[0]; ++a)
      for (std::int64_t b = 0; b < extents[1]; ++b)
        for (std::int64_t c = 0; c < extents[2]; ++c)
          for (std::int64_t d = 0; d < extents[3]; ++d) visit(std::array{a, b, c, d}, i++);
  }

  std::vector<std::int64_t> extents;

 private:
  std::size_t offset(const std::array<std::int64_t, 4>& at) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < 4; ++i) sum += at[i] * strides_[i];
    return static_cast<std::size_t>(sum);
  }

  std::vector<std::int64_t> strides_;
  cudnnDataType_t type_;
  void* data_;
};

/// Calls visit(x index, w index, y index) for every product of a convolution.
template <class Visit>
void each_product(const FakeDescriptor& convolution, const std::vector<std::int64_t>& x,
                  const std::vector<std::int64_t>& w, const std::vector<std::int64_t>& y, const Visit& visit) {
  const auto stride = convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const auto padding = convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const std::int64_t filters_of_group = w[0] / (x[1] / w[1]);  // w has the input channels of one group
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t k = 0; k < y[1]; ++k)
      for (std::int64_t p = 0; p < y[2]; ++p)
        for (std::int64_t q = 0; q < y[3]; ++q)
          for (std::int64_t c = 0; c < w[1]; ++c)
            for (std::int64_t r = 0; r < w[2]; ++r)
              for (std::int64_t s = 0; s < w[3]; ++s) {
                const std::int64_t h = p * stride[0] + r - padding[0];
                const std::int64_t v = q * stride[1] + s - padding[1];
                if (h >= 0 && h < x[2] && v >= 0 && v < x[3])
                  visit(std::array{n, k / filters_of_group * w[1] + c, h, v}, std::array{k, c, r, s},
                        std::array{n, k, p, q});
              }
}

std::size_t flat(const std::vector<std::int64_t>& extents, const std::array<std::int64_t, 4>& at) {
  return static_cast<std::size_t>(((at[0] * extents[1] + at[1]) * extents[2] + at[2]) * extents[3] + at[3]);
}

std::vector<double> zeros(const std::vector<std::int64_t>& extents) {
  return std::vector<double>(static_cast<std::size_t>(extents[0] * extents[1] * extents[2] * extents[3]));
}

void forward(const Operations& operations, const FakeMemory& memory) {
  const FakeDescriptor& conv = *operations.front();
  const View x(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X), memory);
  const View w(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W), memory);
  const bool adds_bias = operations.size() == 2;
  View y(adds_bias ? operations[1]->child(CUDNN_ATTR_OPERATION_POINTWISE_YDESC)
                   : conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y),
         memory);
  std::vector<double> sums = zeros(y.extents);
  each_product(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC), x.extents, w.extents, y.extents,
               [&](auto at_x, auto at_w, auto at_y) { sums[flat(y.extents, at_y)] += x.get(at_x) * w.get(at_w); });
  y.each([&](auto at, std::size_t i) {
    double value = sums[i];
    if (adds_bias) {
      const View b(operations[1]->child(CUDNN_ATTR_OPERATION_POINTWISE_BDESC), memory);
      value += b.get({0, at[1], 0, 0});
    }
    y.set(at, value);
  });
}

void dgrad(const FakeDescriptor& conv, const FakeMemory& memory) {
  const View dy(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY), memory);
  const View w(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W), memory);
  View dx(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX), memory);
  std::vector<double> sums = zeros(dx.extents);
  each_product(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC), dx.extents, w.extents, dy.extents,
               [&](auto at_x, auto at_w, auto at_y) { sums[flat(dx.extents, at_x)] += dy.get(at_y) * w.get(at_w); });
  dx.each([&](auto at, std::size_t i) { dx.set(at, sums[i]); });
}

void wgrad(const FakeDescriptor& conv, const FakeMemory& memory) {
  const View dy(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY), memory);
  const View x(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X), memory);
  View dw(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW), memory);
  std::vector<double> sums = zeros(dw.extents);
  each_product(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC), x.extents, dw.extents, dy.extents,
               [&](auto at_x, auto at_w, auto at_y) { sums[flat(dw.extents, at_w)] += dy.get(at_y) * x.get(at_x); });
  dw.each([&](auto at, std::size_t i) { dw.set(at, sums[i]); });
}

}  // namespace

bool holds_exactly(const FakeMemory& memory, const FakeDescriptor& graph) {
  std::set<std::int64_t> in_graph, in_memory;
  for (const auto& operation : graph.children.at(CUDNN_ATTR_OPERATIONGRAPH_OPS))
    for (const auto& [name, children] : operation->children)
      for (const auto& child : children)
        if (child->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR &&
            child->values.at(CUDNN_ATTR_TENSOR_IS_VIRTUAL).at(0) == std::byte{0})
          in_graph.insert(child->one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID));
  for (const auto& [id, data] : memory) in_memory.insert(id);
  return in_graph == in_memory;
}

void run_fake_graph(const FakeDescriptor& graph, const FakeMemory& memory) {
  const Operations& operations = graph.children.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  switch (operations.front()->type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR: return forward(operations, memory);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: return dgrad(*operations.front(), memory);
    default: return wgrad(*operations.front(), memory);
  }
}

}  // namespace gradring::tests
