// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/cuda_device.h"

#include <array>
#include <utility>

#include "kernels/runtime/cuda/cuda_error.h"
#include "kernels/runtime/cuda/cuda_event.h"
#include "kernels/runtime/cuda/cuda_stream.h"
#include "kernels/runtime/cuda/device_count.h"
#include "kernels/runtime/cuda/graph.h"
#include "kernels/runtime/cuda/out_of_memory.h"
#include "kernels/runtime/error.h"

namespace gradring::kernels {
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
