// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cpu/onednn.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/runtime/cpu_level.h"
#include "nn/backend/cpu/onednn_layers.h"
#include "nn/backend/cpu/onednn_support.h"

namespace gradring::nn {
namespace onednn {
namespace {

/// A limit that the user set by oneDNN's own variable stays.
bool limit_instruction_set() {
  using kernels::CpuLevel;
  const auto is_set = [](const char* variable) {
    const char* value = std::getenv(variable);
    return value && *value;
  };
  if (kernels::cpu_levels().size() == 1 || std::ranges::any_of(kOneDnnLimits, is_set)) return true;
  const auto most = [] {
    switch (kernels::cpu_level()) {
      case CpuLevel::x86_64_v4: return dnnl::cpu_isa::avx512_core;
      case CpuLevel::x86_64_v3: return dnnl::cpu_isa::avx2;
      case CpuLevel::baseline: break;
    }
    return dnnl::cpu_isa::sse41;
  }();
  return dnnl::set_max_cpu_isa(most) == dnnl::status::success;
}

}  // namespace

dnnl::engine cpu_engine() {
  static const bool limited = limit_instruction_set();
  if (!limited)
    throw DeviceError("oneDNN was used before it was limited to the CPU level: set ONEDNN_MAX_CPU_ISA yourself");
  return {dnnl::engine::kind::cpu, 0};
}

}  // namespace onednn

std::unique_ptr<Plan> plan_with_onednn(std::span<const NodeSpec> nodes, const kernels::relu::Variant& relu) {
  const NodeSpec& node = nodes.front();
  if (node.dtype != kernels::DType::f32) return nullptr;
  const bool relu_follows = nodes.size() > 1 && std::holds_alternative<Relu>(nodes[1].layer);
  const kernels::relu::Variant* mask = relu_follows ? &relu : nullptr;
  if (std::holds_alternative<Conv2d>(node.layer)) return onednn::plan_conv2d(node, mask);
  if (std::holds_alternative<Linear>(node.layer)) return onednn::plan_linear(node, mask);
  return nullptr;
}

void set_onednn_threads(unsigned threads) { ::omp_set_num_threads(static_cast<int>(threads)); }

bool has_onednn() { return true; }

std::string describe_onednn() {
  const dnnl_version_t* version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

}  // namespace gradring::nn
