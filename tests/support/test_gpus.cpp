// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_gpus.h"

#include <cstdlib>
#include <string_view>

#include "kernels/base/error.h"
#include "tests/support/built_file.h"

namespace gradring::tests {
namespace {

TestGpus real_gpus(const std::string& file) {
  const train::CudaModule& module = train::open_cuda_module(built_file(file));
  if (module.device_count() > 0) return {.module = &module};
  try {
    module.make_device(0);  // says what is missing
  } catch (const DeviceError& error) {
    return {.why_not = error.what()};
  }
  return {.why_not = "there is no GPU"};
}

TestGpus simulated_gpus(const std::string& file, const std::string& card) {
  const train::SimulatedModule opened = train::open_simulated_gpus(built_file(file), {.card = card});
  return {.module = &opened.module, .simulator = &opened.gpus};
}

}  // namespace

TestGpus open_test_gpus(const GpuModules& modules) {
  const char* const value = std::getenv("GRADRING_TEST_GPU");
  const std::string wanted = value ? value : "";
  if (modules.real.empty()) return {.why_not = "this build has no CUDA module"};
  if (wanted.empty() || wanted == "real") {
    TestGpus real = real_gpus(modules.real);
    if (real.module || wanted == "real" || modules.simulated.empty()) return real;
  }
  check(!modules.simulated.empty(), "GRADRING_TEST_GPU is " + wanted + ", but this build simulates no GPUs");
  return simulated_gpus(modules.simulated, wanted.empty() ? "h100" : wanted);
}

}  // namespace gradring::tests
