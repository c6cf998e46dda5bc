// SPDX-License-Identifier: Apache-2.0
#include "tests/nn/backend/cuda/fake_cudnn.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "tests/nn/backend/cuda/fake_graph.h"
#include "tests/nn/backend/cuda/handle_calls.h"

namespace gradring::tests {
namespace {

FakeCudnn* the_fake = nullptr;

using State = FakeDescriptor;
using Handle = std::shared_ptr<State>;
Handle& of(cudnnBackendDescriptor_t descriptor) { return *static_cast<Handle*>(descriptor); }

std::string type_of(const State& tensor) {
  switch (tensor.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)) {
    case CUDNN_DATA_HALF: return "f16";
    case CUDNN_DATA_BFLOAT16: return "bf16";
    default: return "f32";
  }
}

const std::vector<Handle>& operations_of(const State& graph) {
  return graph.children.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
}

/// "wgrad f16 dw f32", as a record names what a graph computes.
std::string kind_of(const State& graph) {
  const State& conv = *operations_of(graph).front();
  switch (conv.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return std::string(operations_of(graph).size() > 1 ? "forward_bias " : "forward ") +
             type_of(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X));
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return "dgrad " + type_of(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY));
    default:
      return "wgrad " + type_of(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X)) + " dw " +
             type_of(conv.child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW));
  }
}

bool has_f32_dw(const std::string& kind) { return kind == "wgrad f16 dw f32" || kind == "wgrad bf16 dw f32"; }

bool knows(const State& graph) {
  return (operations_of(graph).size() == 1 || the_fake->fuses) && (!has_f32_dw(kind_of(graph)) || the_fake->f32_dw);
}

/// What the real heuristics offered for such a graph, and for what they did not know one engine.
std::vector<FakeEngine> recorded_engines(const std::string& kind) {
  const Offer* const offer = the_fake->record.find("sm_90", kind);
  if (!offer || has_f32_dw(kind)) return {{.index = 1, .notes = {}, .workspace_bytes = 64, .knobs = {}}};
  std::vector<FakeEngine> engines;
  for (const OfferedEngine& engine : offer->engines)
    engines.push_back({.index = engine.index, .notes = engine.notes, .workspace_bytes = 64, .knobs = {}});
  return engines;
}

std::vector<FakeEngine> engines_of(cudnnBackendHeurMode_t mode, const State& graph) {
  if (mode == CUDNN_HEUR_MODE_A) return the_fake->mode_a ? *the_fake->mode_a : recorded_engines(kind_of(graph));
  return mode == CUDNN_HEUR_MODE_B ? the_fake->mode_b : the_fake->fallback;
}

// The functions of the interface.

std::size_t get_version() { return 91900; }
const char* get_error_string(cudnnStatus_t) { return "CUDNN_STATUS_FAKED"; }
void get_last_error_string(char* text, std::size_t bytes) { std::strncpy(text, "the fake's last words", bytes); }

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
  if (state.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) the_fake->graphs.push_back(kind_of(state));
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
    for (const FakeEngine& engine : engines_of(state.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE),
                                               state.child(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)))
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
  FakeMemory memory;
  for (std::size_t i = 0; i < ids.size(); ++i) memory[ids[i]] = pointers.at(i);
  // Of the graph that the heuristic was asked about, which its configurations carry on.
  const State& config = of(plan)->child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const State& graph = config.child(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  if (!holds_exactly(memory, graph)) return CUDNN_STATUS_BAD_PARAM;
  run_fake_graph(graph, memory);
  the_fake->executed.push_back(engine.index);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

FakeCudnn::FakeCudnn() { the_fake = this; }
FakeCudnn::~FakeCudnn() { the_fake = nullptr; }

nn::CudnnApi FakeCudnn::api() const {
  nn::CudnnApi api;
  api.get_version = get_version;
  api.get_error_string = get_error_string;
  api.get_last_error_string = get_last_error_string;
  fake_handle(api);
  api.create_descriptor = create_descriptor;
  api.destroy_descriptor = destroy_descriptor;
  api.finalize = finalize;
  api.set_attribute = set_attribute;
  api.get_attribute = get_attribute;
  api.execute = execute;
  return api;
}

}  // namespace gradring::tests
