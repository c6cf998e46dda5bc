// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cudnn_engine.h"

#include <algorithm>

namespace gradring::nn {
namespace {

constexpr std::int64_t kMostConfigs = 32;  // of one heuristic; each knows fewer for a convolution
constexpr std::int64_t kMostKnobs = CUDNN_KNOB_TYPE_COUNTS;

CudnnDescriptor engine_of(const CudnnDescriptor& config) {
  auto engines = config.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  check<DeviceError>(!engines.empty(), "cuDNN names no engine in its own engine configuration");
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

std::string name_of(const CudnnApi& api, const CudnnDescriptor& config) {
  std::string name = "engine " + std::to_string(engine_of(config).int64(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  const auto knobs =
      config.descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, kMostKnobs);
  if (!knobs.empty()) name += " knobs";
  for (const CudnnDescriptor& knob : knobs)
    name += " " + std::to_string(knob_type(api, knob)) + "=" +
            std::to_string(knob.int64(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  return name;
}

/// What one heuristic thinks of a graph; nothing where it thinks nothing.
std::vector<CudnnDescriptor> heuristic(const CudnnApi& api, const CudnnDescriptor& graph, cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristic(api, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (!heuristic.try_finalize()) return {};
  return heuristic.descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kMostConfigs);
}

bool keeps_to(const CudnnEngineRules& rules, const CudnnDescriptor& config) {
  const auto notes = engine_of(config).numerical_notes();
  const auto has = [&notes](cudnnBackendNumericalNote_t note) { return std::ranges::find(notes, note) != notes.end(); };
  if (rules.reproducible && has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  if (rules.exact_products && (has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) || has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)))
    return false;
  return !has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
}

}  // namespace

std::vector<CudnnEngineConfig> engine_configs(const CudnnApi& api, const CudnnDescriptor& graph) {
  std::vector<CudnnEngineConfig> configs;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK})
    for (CudnnDescriptor& config : heuristic(api, graph, mode)) {
      std::string name = name_of(api, config);
      if (std::ranges::find(configs, name, &CudnnEngineConfig::name) == configs.end())
        configs.push_back({std::move(config), std::move(name)});
    }
  return configs;
}

std::optional<CudnnEngine> make_engine(const CudnnApi& api, cudnnHandle_t handle, const CudnnEngineConfig& config,
                                       const CudnnEngineRules& rules) {
  if (!keeps_to(rules, config.descriptor)) return std::nullopt;
  CudnnDescriptor plan(api, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle)
      .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config.descriptor);
  if (!plan.try_finalize()) return std::nullopt;
  const auto workspace_bytes = static_cast<std::size_t>(plan.int64(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  if (workspace_bytes > rules.most_workspace_bytes) return std::nullopt;
  return CudnnEngine{std::move(plan), config.name, workspace_bytes};
}

}  // namespace gradring::nn
