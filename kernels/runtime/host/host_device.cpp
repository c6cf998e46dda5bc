// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/host/host_device.h"

#include <algorithm>
#include <fstream>
#include <new>
#include <thread>
#include <utility>

#include "kernels/runtime/cpu_level.h"
#include "kernels/runtime/error.h"
#include "kernels/runtime/host/host_event.h"
#include "kernels/runtime/host/in_place_stream.h"
#include "kernels/runtime/host/threaded_stream.h"

namespace gradring::kernels {
namespace {

/// A cache line, an AVX-512 register, and more than any vector type of CUDA asks for.
constexpr std::align_val_t kAlignment{64};

class HostMemory final : public Buffer::Resource {
 public:
  void release(void* data, std::size_t) noexcept override { ::operator delete(data, kAlignment); }
};

class CalledAgain final : public Recording {
 public:
  explicit CalledAgain(std::function<void()> enqueue_work) : enqueue_work_(std::move(enqueue_work)) {}
  void enqueue(Stream&) override { enqueue_work_(); }

 private:
  std::function<void()> enqueue_work_;
};

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

}  // namespace

HostDevice::HostDevice(simt::ExecutorOptions execution)
    : execution_(execution), memory_(std::make_unique<HostMemory>()) {}

HostDevice::~HostDevice() = default;

std::string HostDevice::description() const {
  return processor_name() + ", " + std::to_string(std::max(1u, std::thread::hardware_concurrency())) + " threads, " +
         std::string(cpu_level_name(cpu_level())) + " code";
}

Buffer HostDevice::allocate(std::size_t bytes, MemoryKind) {
  if (bytes == 0) return {};
  void* data = ::operator new(bytes, kAlignment, std::nothrow);
  if (!data)
    throw DeviceError("no " + std::to_string(bytes) + " bytes of memory left on the CPU: lower the batch size");
  return Buffer(data, bytes, *memory_);
}

std::unique_ptr<Stream> HostDevice::make_stream(StreamMode mode) {
  if (mode == StreamMode::in_place) return std::make_unique<InPlaceStream>(execution_);
  return std::make_unique<ThreadedStream>(execution_);
}

std::unique_ptr<Event> HostDevice::make_event() { return std::make_unique<HostEvent>(); }

std::unique_ptr<Recording> HostDevice::record(Stream&, std::function<void()> enqueue_work) {
  return std::make_unique<CalledAgain>(std::move(enqueue_work));
}

}  // namespace gradring::kernels
