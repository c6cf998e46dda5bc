// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cudnn.h"

#include <limits>

#include "kernels/runtime/timed_calls.h"

namespace gradring::nn {
namespace {

CudnnDescriptor engine_of(const CudnnDescriptor& config) {
  auto engines = config.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  check<DeviceError>(!engines.empty(), "cuDNN's engine configuration has no engine");
  return std::move(engines.front());
}

std::int64_t knob_type(const CudnnApi& api, const CudnnDescriptor& knob) {
  cudnnBackendKnobType_t type{};
  std::int64_t count = 0;
  cudnn_check(api,
              api.get_attribute(knob.get(), CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &count, &type),
              "cudnnBackendGetAttribute");
  return type;
}

std::string name_of(const CudnnApi& api, const CudnnDescriptor& config, const CudnnDescriptor& engine) {
  std::string name = "engine " + std::to_string(engine.int64(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  const auto knobs = config.descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                                        CUDNN_KNOB_TYPE_COUNTS);
  if (!knobs.empty()) name += " knobs";
  for (const CudnnDescriptor& knob : knobs)
    name += " " + std::to_string(knob_type(api, knob)) + "=" +
            std::to_string(knob.int64(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  return name;
}

/// The engine configurations that one heuristic proposes; may be empty.
std::vector<CudnnDescriptor> heuristic(const CudnnApi& api, const CudnnDescriptor& graph, cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristic(api, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (!heuristic.try_finalize()) return {};
  return heuristic.descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                               heuristic.result_count());
}

bool is_deterministic(const CudnnEngineConfig& config) { return !config.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC); }

bool obeys(const CudnnEngineRules& rules, const CudnnEngineConfig& config) {
  const auto has_any = [&config](std::initializer_list<cudnnBackendNumericalNote_t> notes) {
    return std::ranges::any_of(notes, [&config](cudnnBackendNumericalNote_t note) { return config.has(note); });
  };
  if (rules.reproducible && !is_deterministic(config)) return false;
  if (rules.exact_products && has_any({CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, CUDNN_NUMERICAL_NOTE_TENSOR_CORE}))
    return false;
  return !has_any({CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, CUDNN_NUMERICAL_NOTE_FFT,
                   CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
                   CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13});
}

constexpr std::size_t kMeasuredEngines = 8;

std::size_t bytes(std::int64_t elements, kernels::DType dtype) {
  return static_cast<std::size_t>(elements) * kernels::size_of(dtype);
}

}  // namespace

std::vector<CudnnEngineConfig> engine_configs(const CudnnApi& api, const CudnnDescriptor& graph) {
  std::vector<CudnnEngineConfig> configs;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK})
    for (CudnnDescriptor& config : heuristic(api, graph, mode)) {
      const CudnnDescriptor engine = engine_of(config);
      std::string name = name_of(api, config, engine);
      if (std::ranges::find(configs, name, &CudnnEngineConfig::name) == configs.end())
        configs.push_back({std::move(config), std::move(name), engine.numerical_notes()});
    }
  std::ranges::stable_partition(configs, is_deterministic);  // so that a resumed run ends with the same bits
  return configs;
}

std::optional<CudnnEngine> make_engine(const CudnnApi& api, cudnnHandle_t handle, const CudnnEngineConfig& config,
                                       const CudnnEngineRules& rules) {
  if (!obeys(rules, config)) return std::nullopt;
  CudnnDescriptor plan(api, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle)
      .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config.descriptor);
  if (!plan.try_finalize()) return std::nullopt;
  const auto workspace_bytes = static_cast<std::size_t>(plan.int64(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  if (workspace_bytes > rules.most_workspace_bytes) return std::nullopt;
  return CudnnEngine{std::move(plan), config.name, workspace_bytes};
}

Cudnn::Cudnn(CudnnApi api, kernels::Device& device, const CudaBackendOptions& options)
    : api_(api),
      device_(device),
      reproducible_(options.reproducible),
      autotune_(options.autotune),
      share_choice_(options.share_choice),
      handle_(make_handle(device, api_.create, api_.destroy,
                          [this](cudnnStatus_t status) { cudnn_check(api_, status, "cudnnCreate"); })),
      cache_(options.plan_cache, device.description() + "; cuDNN " + std::to_string(api_.get_version())) {}

std::vector<CudnnEngine> Cudnn::candidates(const std::vector<CudnnEngineConfig>& configs, const CudnnEngineRules& rules,
                                           std::size_t most) {
  std::vector<CudnnEngine> engines;
  for (const CudnnEngineConfig& config : configs) {
    if (engines.size() == most) break;
    if (auto engine = make_engine(api_, handle_.get(), config, rules)) engines.push_back(std::move(*engine));
  }
  return engines;
}

std::vector<CudnnEngineConfig> Cudnn::configs_for(const ConvProblem& problem) {
  make_current(device_);
  return engine_configs(api_, make_graph(api_, handle_.get(), problem));
}

CudnnEngineRules Cudnn::rules_for(const ConvProblem& problem, std::size_t most_workspace_bytes) const {
  return {.reproducible = reproducible_,
          .exact_products = problem.dtype == kernels::DType::f32,
          .most_workspace_bytes = most_workspace_bytes};
}

std::optional<CudnnEngine> Cudnn::choose(const ConvProblem& problem, std::size_t most_workspace_bytes,
                                         const std::string& preferred) {
  std::vector<CudnnEngineConfig> configs = configs_for(problem);
  std::ranges::stable_partition(configs, [&](const auto& config) { return config.name == preferred; });
  std::vector<CudnnEngine> engines = candidates(configs, rules_for(problem, most_workspace_bytes), 1);
  if (engines.empty()) return std::nullopt;
  return std::move(engines.front());
}

std::string Cudnn::tune(const ConvProblem& problem, std::size_t most_workspace_bytes) {
  if (!autotune_) return "";
  if (const auto known = cache_.find(problem.key())) return *known;
  const std::vector<CudnnEngine> engines =
      candidates(configs_for(problem), rules_for(problem, most_workspace_bytes), kMeasuredEngines);
  if (engines.empty()) return "";
  const std::string& name = fastest(engines, problem).name;
  cache_.store(problem.key(), name);
  return name;
}

const CudnnEngine& Cudnn::fastest(const std::vector<CudnnEngine>& engines, const ConvProblem& problem) {
  const auto& geometry = problem.geometry;
  std::size_t workspace_bytes = 0;
  for (const CudnnEngine& engine : engines) workspace_bytes = std::max(workspace_bytes, engine.workspace_bytes);
  const kernels::Buffer x = device_.allocate(bytes(geometry.in_elements(), problem.dtype));
  const kernels::Buffer w = device_.allocate(bytes(geometry.weight_elements(), kernels::DType::f32));  // or half of it
  const kernels::Buffer y = device_.allocate(bytes(geometry.out_elements(), problem.dtype));
  const kernels::Buffer b = device_.allocate(bytes(geometry.out_channels, problem.dtype));
  const std::map<ConvTensor, void*> memory = {
      {kTensorX, x.data()}, {kTensorW, w.data()}, {kTensorY, y.data()}, {kTensorB, b.data()}};
  std::vector<CudnnPointer> tensors;
  for (const ConvTensor tensor : tensors_of(problem.pass)) tensors.push_back({tensor, memory.at(tensor)});
  const kernels::Buffer workspace = device_.allocate(workspace_bytes);
  const auto stream = device_.make_stream(kernels::StreamMode::asynchronous);
  for (const kernels::Buffer* buffer : {&x, &w, &y, &b}) stream->enqueue_zero(buffer->data(), buffer->size());

  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < engines.size(); ++i) {
    const double seconds =
        kernels::least_seconds(device_, *stream, [&] { enqueue(*stream, engines[i], tensors, workspace.data()); });
    if (seconds < least) {
      least = seconds;
      best = i;
    }
  }
  return engines[best];
}

void Cudnn::enqueue(kernels::Stream& stream, const CudnnEngine& engine, const std::vector<CudnnPointer>& tensors,
                    void* workspace) {
  make_current(device_);
  std::vector<std::int64_t> ids;
  std::vector<const void*> pointers;
  for (const CudnnPointer& tensor : tensors) {
    ids.push_back(tensor.tensor);
    pointers.push_back(tensor.data);
  }
  CudnnDescriptor pack(api_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<std::int64_t>(pointers.size()),
           pointers.data())
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack.finalize();
  cudnn_check(api_, api_.set_stream(handle_.get(), static_cast<cudaStream_t>(stream.native_handle())),
              "cudnnSetStream");
  cudnn_check(api_, api_.execute(handle_.get(), engine.plan.get(), pack.get()), "cudnnBackendExecute");
}

}  // namespace gradring::nn
