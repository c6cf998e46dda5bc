// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/cuda_device.h"

#include <array>
#include <utility>

#include "kernels/runtime/cuda/cuda_error.h"
#include "kernels/runtime/cuda/cuda_stream.h"
#include "kernels/runtime/error.h"

namespace gradring::kernels {
namespace {

/// 12040 is "12.4".
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string why_no_index(int devices, int index) {
  return "there is no device cuda:" + std::to_string(index) + ": this process sees " + std::to_string(devices) +
         (devices == 1 ? " CUDA device, cuda:0" : " CUDA devices, cuda:0 to cuda:" + std::to_string(devices - 1)) +
         "; name one of these, and see whether CUDA_VISIBLE_DEVICES hides the one that you meant";
}

std::string why_none(const DeviceCount& count) {
  if (count.driver_version == 0) return "the NVIDIA driver is not installed (no libcuda.so.1 was found): install it";
  if (count.result == cudaErrorInsufficientDriver)
    return "the NVIDIA driver supports CUDA " + version_text(count.driver_version) + ", this build needs " +
           version_text(count.runtime_version) + ": update the driver";
  if (count.result == cudaErrorNoDevice || count.result == cudaSuccess)
    return "the NVIDIA driver (CUDA " + version_text(count.driver_version) +
           ") finds no GPU: see what nvidia-smi lists, and whether CUDA_VISIBLE_DEVICES hides it";
  return std::string("the NVIDIA driver answers ") + cudaGetErrorName(count.result) + ", " +
         cudaGetErrorString(count.result) + ": see whether nvidia-smi works";
}

}  // namespace

int cuda_device_count() { return count_devices().devices; }

DeviceCount count_devices() {
  DeviceCount count;
  count.result = cudaGetDeviceCount(&count.devices);
  if (count.result != cudaSuccess) count.devices = 0;
  (void)cudaDriverGetVersion(&count.driver_version);
  (void)cudaRuntimeGetVersion(&count.runtime_version);
  (void)cudaGetLastError();
  return count;
}

std::string why_no_device(const DeviceCount& count, int index) {
  if (count.result != cudaSuccess || count.devices == 0) return "no CUDA device: " + why_none(count);
  return index >= 0 && index < count.devices ? "" : why_no_index(count.devices, index);
}

namespace {

/// `index`, if there is such a device.
int existing(int index) {
  const std::string why = why_no_device(count_devices(), index);
  if (!why.empty()) throw DeviceError(why);
  return index;
}

class CudaRecording final : public Recording {
 public:
  explicit CudaRecording(Graph graph) : graph_(std::move(graph)) {}
  void enqueue(Stream& stream) override { graph_.enqueue(stream); }

 private:
  Graph graph_;
};

}  // namespace

CudaDevice::CudaDevice(int index) : index_(existing(index)), pool_(index), pinned_(index) {}

std::string CudaDevice::description() const {
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, index_), "cudaGetDeviceProperties");
  return std::string(properties.name) + ", " + gibibytes(properties.totalGlobalMem) + ", sm_" +
         std::to_string(properties.major) + std::to_string(properties.minor);
}

std::string CudaDevice::bus_id() const {
  std::array<char, 32> text{};
  cuda_check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), index_), "cudaDeviceGetPCIBusId");
  return text.data();
}

Buffer CudaDevice::allocate(std::size_t bytes, MemoryKind kind) {
  if (bytes == 0) return {};
  return kind == MemoryKind::device ? pool_.allocate(bytes) : pinned_.allocate(bytes);
}

std::unique_ptr<Stream> CudaDevice::make_stream(StreamMode) { return std::make_unique<CudaStream>(index_, failure_); }

std::unique_ptr<Event> CudaDevice::make_event() { return std::make_unique<CudaEvent>(index_, failure_); }

std::unique_ptr<Recording> CudaDevice::record(Stream& stream, std::function<void()> enqueue_work) {
  return std::make_unique<CudaRecording>(Graph::capture(static_cast<CudaStream&>(stream), enqueue_work));
}

}  // namespace gradring::kernels
