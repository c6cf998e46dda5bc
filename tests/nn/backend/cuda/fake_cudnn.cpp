// SPDX-License-Identifier: Apache-2.0
#include "tests/nn/backend/cuda/fake_cudnn.h"

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>

#include "kernels/runtime/half.h"

namespace gradring::tests {
namespace {

FakeCudnn* the_fake = nullptr;

/// What a descriptor holds; shared, as those that were given to others live on in them.
struct State {
  cudnnBackendDescriptorType_t type{};
  bool finished = false;
  std::map<int, std::vector<std::byte>> values;
  std::map<int, std::vector<std::shared_ptr<State>>> children;
  FakeEngine engine;  ///< of an engine, a configuration and a knob choice
  std::size_t knob = 0;

  template <class T>
  std::vector<T> all(cudnnBackendAttributeName_t name) const {
    const std::vector<std::byte>& bytes = values.at(name);
    std::vector<T> typed(bytes.size() / sizeof(T));
    std::memcpy(typed.data(), bytes.data(), bytes.size());
    return typed;
  }
  template <class T>
  T one(cudnnBackendAttributeName_t name) const {
    return all<T>(name).at(0);
  }
  const State& child(cudnnBackendAttributeName_t name) const { return *children.at(name).at(0); }
};

using Handle = std::shared_ptr<State>;
Handle& of(cudnnBackendDescriptor_t descriptor) { return *static_cast<Handle*>(descriptor); }

/// One tensor of a graph, where it lies, and how it is read and written.
class View {
 public:
  View(const State& tensor, const std::map<std::int64_t, void*>& memory)
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
void each_product(const State& convolution, const std::vector<std::int64_t>& x, const std::vector<std::int64_t>& w,
                  const std::vector<std::int64_t>& y, const Visit& visit) {
  const auto stride = convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const auto padding = convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
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
                  visit(std::array{n, c, h, v}, std::array{k, c, r, s}, std::array{n, k, p, q});
              }
}

std::size_t flat(const std::vector<std::int64_t>& extents, const std::array<std::int64_t, 4>& at) {
  return static_cast<std::size_t>(((at[0] * extents[1] + at[1]) * extents[2] + at[2]) * extents[3] + at[3]);
}

std::vector<double> zeros(const std::vector<std::int64_t>& extents) {
  return std::vector<double>(static_cast<std::size_t>(extents[0] * extents[1] * extents[2] * extents[3]));
}

using Memory = std::map<std::int64_t, void*>;

void forward(const std::vector<Handle>& operations, const Memory& memory) {
  const State& conv = *operations.front();
  const View x(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X), memory);
  const View w(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W), memory);
  const bool fused = operations.size() == 3;
  View y(fused ? operations[2]->child(CUDNN_ATTR_OPERATION_POINTWISE_YDESC)
               : conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y),
         memory);
  std::vector<double> sums = zeros(y.extents);
  each_product(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC), x.extents, w.extents, y.extents,
               [&](auto at_x, auto at_w, auto at_y) { sums[flat(y.extents, at_y)] += x.get(at_x) * w.get(at_w); });
  y.each([&](auto at, std::size_t i) {
    double value = sums[i];
    if (fused) {
      const View b(operations[1]->child(CUDNN_ATTR_OPERATION_POINTWISE_BDESC), memory);
      value = std::max(value + b.get({0, at[1], 0, 0}), 0.0);
    }
    y.set(at, value);
  });
}

void dgrad(const State& conv, const Memory& memory) {
  const View dy(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY), memory);
  const View w(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W), memory);
  View dx(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX), memory);
  std::vector<double> sums = zeros(dx.extents);
  each_product(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC), dx.extents, w.extents, dy.extents,
               [&](auto at_x, auto at_w, auto at_y) { sums[flat(dx.extents, at_x)] += dy.get(at_y) * w.get(at_w); });
  dx.each([&](auto at, std::size_t i) { dx.set(at, sums[i]); });
}

void wgrad(const State& conv, const Memory& memory) {
  const View dy(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY), memory);
  const View x(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X), memory);
  View dw(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW), memory);
  std::vector<double> sums = zeros(dw.extents);
  each_product(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC), x.extents, dw.extents, dy.extents,
               [&](auto at_x, auto at_w, auto at_y) { sums[flat(dw.extents, at_w)] += dy.get(at_y) * x.get(at_x); });
  dw.each([&](auto at, std::size_t i) { dw.set(at, sums[i]); });
}

bool knows(const State& graph) {
  const std::vector<Handle>& operations = graph.children.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (operations.size() > 1) return the_fake->fuses;
  const State& operation = *operations.front();
  if (operation.type != CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR || the_fake->f32_dw) return true;
  const auto type = [&](cudnnBackendAttributeName_t name) {
    return operation.child(name).one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  };
  return type(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X) == type(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
}

const std::vector<FakeEngine>& engines_of(cudnnBackendHeurMode_t mode) {
  if (mode == CUDNN_HEUR_MODE_A) return the_fake->mode_a;
  return mode == CUDNN_HEUR_MODE_B ? the_fake->mode_b : the_fake->fallback;
}

// The functions of the interface.

std::size_t get_version() { return 91900; }
const char* get_error_string(cudnnStatus_t) { return "CUDNN_STATUS_FAKED"; }
void get_last_error_string(char* text, std::size_t bytes) { std::strncpy(text, "the fake's last words", bytes); }
cudnnStatus_t create(cudnnHandle_t* handle) {
  static int anything = 0;
  *handle = reinterpret_cast<cudnnHandle_t>(&anything);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t destroy(cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t set_stream(cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; }

cudnnStatus_t create_descriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  auto handle = std::make_unique<Handle>(std::make_shared<State>());
  (*handle)->type = type;
  *descriptor = handle.release();
  ++the_fake->live_descriptors;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t destroy_descriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Handle*>(descriptor);
  --the_fake->live_descriptors;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize(cudnnBackendDescriptor_t descriptor) {
  State& state = *of(descriptor);
  if (state.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR && !knows(state.child(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)))
    return CUDNN_STATUS_NOT_SUPPORTED;
  if (state.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
      !state.child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine.compiles)
    return CUDNN_STATUS_NOT_SUPPORTED;
  state.finished = true;
  return CUDNN_STATUS_SUCCESS;
}

std::size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
    case CUDNN_TYPE_FLOAT: return sizeof(float);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE: return 8;
    default: return sizeof(int);  // enumerations
  }
}

cudnnStatus_t set_attribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  State& state = *of(descriptor);
  if (state.finished) return CUDNN_STATUS_BAD_PARAM;
  const auto items = static_cast<std::size_t>(count);
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (std::size_t i = 0; i < items; ++i) {
      const Handle& child = of(static_cast<const cudnnBackendDescriptor_t*>(values)[i]);
      if (!child->finished) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
      state.children[name].push_back(child);
    }
    return CUDNN_STATUS_SUCCESS;
  }
  std::vector<std::byte>& bytes = state.values[name];
  bytes.resize(items * size_of(type));
  std::memcpy(bytes.data(), values, bytes.size());
  return CUDNN_STATUS_SUCCESS;
}

/// Descriptors that the caller made, filled as far as there are engines or knobs.
void fill(const State& state, cudnnBackendAttributeName_t name, std::int64_t asked, std::int64_t& count,
          cudnnBackendDescriptor_t* handles) {
  const auto give = [&](const FakeEngine& engine, std::size_t knob) {
    if (count < asked) {
      State& filled = *of(handles[count]);
      filled.engine = engine;
      filled.knob = knob;
      filled.finished = true;
      const auto graph = state.children.find(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      if (graph != state.children.end()) filled.children[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = graph->second;
    }
    ++count;
  };
  count = 0;
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    for (const FakeEngine& engine : engines_of(state.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE)))
      give(engine, 0);
  } else if (name == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES) {
    for (std::size_t i = 0; i < state.engine.knobs.size(); ++i) give(state.engine, i);
  } else {
    give(state.engine, 0);
  }
}

cudnnStatus_t get_attribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, std::int64_t asked, std::int64_t* count, void* values) {
  const State& state = *of(descriptor);
  if (!state.finished) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    fill(state, name, asked, *count, static_cast<cudnnBackendDescriptor_t*>(values));
    return CUDNN_STATUS_SUCCESS;
  }
  *count = 1;
  switch (name) {
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX: *static_cast<std::int64_t*>(values) = state.engine.index; break;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      *count = static_cast<std::int64_t>(state.engine.notes.size());
      std::copy(state.engine.notes.begin(), state.engine.notes.end(),
                static_cast<cudnnBackendNumericalNote_t*>(values));
      break;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
      *static_cast<cudnnBackendKnobType_t*>(values) = state.engine.knobs.at(state.knob).first;
      break;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
      *static_cast<std::int64_t*>(values) = state.engine.knobs.at(state.knob).second;
      break;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      *static_cast<std::int64_t*>(values) = state.child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine.workspace_bytes;
      break;
    default: return CUDNN_STATUS_BAD_PARAM;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t execute(cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const FakeEngine& engine = of(plan)->child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine;
  if (!engine.compiles) return CUDNN_STATUS_EXECUTION_FAILED;
  const auto ids = of(pack)->all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = of(pack)->all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  auto* const workspace = of(pack)->one<std::byte*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  std::memset(workspace, 0xff, static_cast<std::size_t>(engine.workspace_bytes));
  Memory memory;
  for (std::size_t i = 0; i < ids.size(); ++i) memory[ids[i]] = pointers.at(i);
  // Of the graph that the heuristic was asked about, which its configurations carry on.
  const State& config = of(plan)->child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const std::vector<Handle>& operations =
      config.child(CUDNN_ATTR_ENGINE_OPERATION_GRAPH).children.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  switch (operations.front()->type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR: forward(operations, memory); break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: dgrad(*operations.front(), memory); break;
    default: wgrad(*operations.front(), memory);
  }
  the_fake->executed.push_back(engine.index);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

FakeCudnn::FakeCudnn() { the_fake = this; }
FakeCudnn::~FakeCudnn() { the_fake = nullptr; }

nn::CudnnApi FakeCudnn::api() const {
  return {.get_version = get_version,
          .get_error_string = get_error_string,
          .get_last_error_string = get_last_error_string,
          .create = create,
          .destroy = destroy,
          .set_stream = set_stream,
          .create_descriptor = create_descriptor,
          .destroy_descriptor = destroy_descriptor,
          .finalize = finalize,
          .set_attribute = set_attribute,
          .get_attribute = get_attribute,
          .execute = execute};
}

}  // namespace gradring::tests
