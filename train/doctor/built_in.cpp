// SPDX-License-Identifier: Apache-2.0
#include "train/doctor/built_in.h"

#include <fmt/format.h>

#include "data/fetch/error.h"
#include "data/fetch/http.h"
#include "data/images/png.h"
#include "kernels/bench/provenance.h"
#include "kernels/runtime/cpu_level.h"
#include "kernels/runtime/error.h"
#include "nn/backend/cpu/onednn.h"
#include "train/cuda_module/cuda_module.h"
#include "train/setup/cuda_module_file.h"

namespace gradring::train::doctor {
namespace {

Finding cpu_level() {
  const auto running = kernels::cpu_level();
  const auto supported = kernels::supported_cpu_level();
  const std::string_view name = kernels::cpu_level_name(running);
  if (kernels::cpu_levels().size() == 1) return {"CPU level", fmt::format("{}, no other level in this build", name)};
  if (running == supported) return {"CPU level", std::string(name)};
  return {"CPU level", fmt::format("{}, set by {}", name, kernels::kCpuLevelVariable),
          fmt::format("this processor has {}: unset {} for more speed", kernels::cpu_level_name(supported),
                      kernels::kCpuLevelVariable)};
}

Finding onednn() {
  const std::string description = nn::describe_onednn();
  if (description.starts_with("oneDNN")) return {"oneDNN", description.substr(sizeof "oneDNN")};
  return {"oneDNN", "none",
          "convolutions of other shapes than the seed model's are slow: install libdnnl-dev and build again"};
}

Finding libcurl() {
  try {
    data::require_http();
    const std::string library = data::http_library();
    return {"libcurl", library.substr(0, library.find(' '))};  // not what it is made of
  } catch (const data::FetchError& error) {
    return {"libcurl", "none", fmt::format("gradring data fetch cannot work: {}", error.what())};
  }
}

Finding libpng() {
  const std::string version = data::png_library();
  if (!version.empty()) return {"libpng", version};
  return {"libpng", "none", "gradring predict cannot work: install libpng-dev and build again"};
}

Finding cuda_module() {
  const auto file = cuda_module_file();
  if (file.empty())
    return {"CUDA module", "none", "to build it, install the CUDA toolkit (12.0 or later) and use the preset cuda"};
  try {
    const CudaModule module(file);
    return {"CUDA module", file.string()};
  } catch (const DeviceError& error) {
    return {"CUDA module", "does not open", error.what()};
  }
}

}  // namespace

std::vector<Finding> built_in() {
  return {{"commit", kernels::bench::provenance().commit}, cpu_level(), onednn(), libcurl(), libpng(), cuda_module()};
}

}  // namespace gradring::train::doctor
