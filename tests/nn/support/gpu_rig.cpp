// SPDX-License-Identifier: Apache-2.0
#include "tests/nn/support/gpu_rig.h"

#include <utility>

#include "tests/support/test_gpus.h"

namespace gradring::tests {

RigDevice on_any_device(const std::string& backend, std::string& why_not) {
  if (backend != "cuda") return on_host(backend);
  const TestGpus gpus = open_test_gpus({GRADRING_CUDA_MODULE, GRADRING_SIMULATED_GPU_MODULE});
  why_not = gpus.why_not;
  if (!gpus.module) return {};
  auto device = gpus.make_device();
  auto made = gpus.module->make_backend(*device, {.has_libraries = gpus.simulator == nullptr});
  return {std::move(device), std::move(made)};
}

}  // namespace gradring::tests
