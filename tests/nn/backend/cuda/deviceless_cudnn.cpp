// SPDX-License-Identifier: Apache-2.0
#include "tests/nn/backend/cuda/deviceless_cudnn.h"

#include <nlohmann/json.hpp>

#include "tests/nn/backend/cuda/handle_calls.h"

namespace gradring::tests {
namespace {

// cuDNN's functions have no argument for ours.
DevicelessCudnn* the_one = nullptr;
nn::CudnnApi real;
cudnnBackendDescriptor_t device = nullptr;

std::string description_of(const GpuModel& gpu) {
  return nlohmann::json{{"cudaDeviceId", 0},
                        {"deviceName", gpu.name},
                        {"deviceVer", 10 * gpu.compute_capability},
                        {"driverVer", 13000},
                        {"isTccDriver", 0},
                        {"l2CacheSize", gpu.l2_bytes},
                        {"maxBlockSize", {1024, 1024, 64}},
                        {"maxCtasPerSM", 32},
                        {"maxGridSize", {2147483647, 65535, 65535}},
                        {"maxRegistersPerSM", 65536},
                        {"maxSharedMemoryPerBlock", 49152},
                        {"maxSharedMemoryPerBlockOptin", gpu.shared_bytes_of_block},
                        {"maxThreadsPerBlock", 1024},
                        {"maxThreadsPerSM", 2048},
                        {"memClockRateKHz", gpu.memory_clock_khz},
                        {"multiProcessorCount", gpu.multiprocessors},
                        {"pciDeviceId", 0},
                        {"regsPerBlock", 65536},
                        {"reservedSharedMemoryPerBlock", 1024},
                        {"smClockRateKHz", gpu.clock_khz},
                        {"supportCoopLaunch", 1},
                        {"totalGlobalMem", gpu.memory_bytes},
                        {"warpSize", 32}}
      .dump();
}

nn::CudnnDescriptor described(const nn::CudnnApi& api, const GpuModel& gpu) {
  const std::string text = description_of(gpu);
  nn::CudnnDescriptor descriptor(api, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(text.size()),
                 text.data());
  descriptor.finalize();
  return descriptor;
}

// The functions that need a device.

cudnnStatus_t create_descriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  if (type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) ++the_one->dgrad_operations;
  if (type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR) ++the_one->wgrad_operations;
  return real.create_descriptor(type, descriptor);
}

/// The description goes where a handle would; a graph needs neither.
cudnnStatus_t set_attribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  const auto set_device = [&](cudnnBackendAttributeName_t attribute) {
    return real.set_attribute(descriptor, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
  };
  if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE) return CUDNN_STATUS_SUCCESS;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE) return set_device(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  const cudnnStatus_t status = real.set_attribute(descriptor, name, type, count, values);
  if (status == CUDNN_STATUS_SUCCESS && name == CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)
    return set_device(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  return status;
}

cudnnStatus_t execute(cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t) {
  const nn::CudnnDescriptor config(real, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  cudnnBackendDescriptor_t filled = config.get();
  std::int64_t count = 0;
  const auto get = [&](cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, void* value) {
    nn::cudnn_check(real, real.get_attribute(plan, name, type, 1, &count, value), "cudnnBackendGetAttribute");
  };
  DevicelessCudnn::Executed executed;
  get(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, &filled);
  get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, &executed.workspace_bytes);
  const auto engines = config.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  executed.engine = engines.at(0).int64(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  executed.notes = engines.at(0).numerical_notes();
  the_one->executed.push_back(std::move(executed));
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

GpuModel a100() {
  return {.name = "NVIDIA A100-SXM4-80GB",
          .compute_capability = 80,
          .multiprocessors = 108,
          .shared_bytes_of_block = 166912,
          .memory_bytes = 84974239744,
          .l2_bytes = 41943040,
          .clock_khz = 1410000,
          .memory_clock_khz = 1593000};
}

GpuModel h100() {
  return {.name = "NVIDIA H100 80GB HBM3",
          .compute_capability = 90,
          .multiprocessors = 132,
          .shared_bytes_of_block = 232448,
          .memory_bytes = 85045215232,
          .l2_bytes = 52428800,
          .clock_khz = 1980000,
          .memory_clock_khz = 2619000};
}

GpuModel t4() {
  return {.name = "Tesla T4",
          .compute_capability = 75,
          .multiprocessors = 40,
          .shared_bytes_of_block = 65536,
          .memory_bytes = 15828320256,
          .l2_bytes = 4194304,
          .clock_khz = 1590000,
          .memory_clock_khz = 5001000};
}

std::optional<std::string> DevicelessCudnn::missing() {
  try {
    const std::size_t version = nn::CudnnApi::load().get_version();
    if (version >= kLeastVersion) return std::nullopt;
    return "libcudnn is " + cudnn_version_text(version) + ", which cannot plan for a described device, " +
           cudnn_version_text(kLeastVersion) + " and later can";
  } catch (const DeviceError& error) {
    return error.what();
  }
}

DevicelessCudnn::DevicelessCudnn(const GpuModel& gpu) : real_(nn::CudnnApi::load()), device_(described(real_, gpu)) {
  the_one = this;
  real = real_;
  device = device_.get();
}

DevicelessCudnn::~DevicelessCudnn() { the_one = nullptr; }

nn::CudnnApi DevicelessCudnn::api() const {
  nn::CudnnApi api = real_;
  fake_handle(api);
  api.create_descriptor = create_descriptor;
  api.set_attribute = set_attribute;
  api.execute = execute;
  return api;
}

std::string cudnn_version_text(std::size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace gradring::tests
