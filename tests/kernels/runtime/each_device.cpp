// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/runtime/each_device.h"

#include "kernels/runtime/host/host_device.h"
#include "train/cuda_module/cuda_module.h"

namespace gradring::kernels {

std::string name_of(const DeviceCase& device_case) {
  if (device_case.kind == DeviceKind::cuda) return "cuda";
  return device_case.mode == StreamMode::in_place ? "cpu_in_place" : "cpu_asynchronous";
}

std::unique_ptr<Device> open_device(DeviceKind kind, std::string& why_not) {
  if (kind == DeviceKind::cpu) return std::make_unique<HostDevice>();
  const std::string file = GRADRING_CUDA_MODULE;
  if (file.empty()) {
    why_not = "this build has no CUDA module";
    return nullptr;
  }
  const train::CudaModule module(file);
  try {
    return module.make_device(0);
  } catch (const std::exception& error) {
    if (module.device_count() > 0) throw;  // there is one, and it does not open: that is a failure
    why_not = error.what();
    return nullptr;
  }
}

}  // namespace gradring::kernels
