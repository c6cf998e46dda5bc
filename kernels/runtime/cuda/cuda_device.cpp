// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/cuda_device.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "kernels/base/deadline.h"
#include "kernels/base/error.h"
#include "kernels/runtime/cuda/cuda_error.h"
#include "kernels/runtime/cuda/cuda_stream.h"

namespace gradring::kernels {
namespace {

/// The pool's stream has no work but the pool's own, so it is never far behind.
constexpr std::chrono::seconds kLongestWait(30);

bool finish(cudaStream_t stream, cudaError_t& state) {
  return poll_until([&] { return (state = cudaStreamQuery(stream)) != cudaErrorNotReady; },
                    Deadline::after(kLongestWait));
}

cudaMemPool_t make_pool(int index) {
  make_current(index);
  int supported = 0;
  cuda_check(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, index), "cudaDeviceGetAttribute");
  check<DeviceError>(supported != 0, [&] {
    return "cuda:" + std::to_string(index) +
           " has no memory pools, which gradring needs: update the driver, or use a GPU that is not virtual";
  });
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = index;
  cudaMemPool_t pool = nullptr;
  cuda_check(cudaMemPoolCreate(&pool, &properties), "cudaMemPoolCreate");
  return pool;
}

}  // namespace

DevicePool::DevicePool(int index) : index_(index), pool_(make_pool(index), {index}), stream_(nullptr, {index}) {
  std::uint64_t keep_all = UINT64_MAX;
  cuda_check(cudaMemPoolSetAttribute(pool_.get(), cudaMemPoolAttrReleaseThreshold, &keep_all),
             "cudaMemPoolSetAttribute");
  cudaStream_t stream = nullptr;
  cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  stream_.reset(stream);
}

DevicePool::~DevicePool() {
  cudaError_t ignored = cudaSuccess;
  if (try_make_current(index_)) finish(stream_.get(), ignored);
}

Buffer DevicePool::allocate(std::size_t bytes) {
  make_current(index_);
  void* data = nullptr;
  const cudaError_t result = cudaMallocFromPoolAsync(&data, bytes, pool_.get(), stream_.get());
  // More than CUDA can address is an invalid value to it.
  if (result == cudaErrorMemoryAllocation || result == cudaErrorInvalidValue) {
    (void)cudaGetLastError();
    std::size_t total = 0;
    const std::size_t free = free_bytes(total);
    if (result == cudaErrorMemoryAllocation || bytes > total)
      throw DeviceError(out_of_memory("cuda:" + std::to_string(index_), bytes, free, total));
  }
  cuda_check(result, "cudaMallocFromPoolAsync");
  Buffer buffer(data, bytes, *this);
  // Only after this point may other streams, which know nothing of the pool's, use the block.
  cudaError_t state = cudaSuccess;
  check<DeviceError>(finish(stream_.get(), state), "the device did not hand out memory before the deadline: it hangs");
  cuda_check(state, "cudaMallocFromPoolAsync");
  return buffer;
}

void DevicePool::release(void* data, std::size_t) noexcept {
  if (try_make_current(index_)) (void)cudaFreeAsync(data, stream_.get());
}

std::size_t DevicePool::free_bytes(std::size_t& total) const {
  std::size_t free = 0;
  cuda_check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  std::uint64_t reserved = 0;
  std::uint64_t used = 0;
  cuda_check(cudaMemPoolGetAttribute(pool_.get(), cudaMemPoolAttrReservedMemCurrent, &reserved),
             "cudaMemPoolGetAttribute");
  cuda_check(cudaMemPoolGetAttribute(pool_.get(), cudaMemPoolAttrUsedMemCurrent, &used), "cudaMemPoolGetAttribute");
  return free + static_cast<std::size_t>(reserved - used);
}

PinnedMemory::~PinnedMemory() {
  if (failure_->happened() || !try_make_current(index_)) return;
  for (const Block& block : blocks_) (void)cudaFreeHost(block.data);
}

PinnedMemory::Block* PinnedMemory::unused(std::size_t bytes) {
  Block* best = nullptr;
  for (Block& block : blocks_)
    if (!block.used && block.bytes >= bytes && block.bytes / 2 <= bytes && (!best || block.bytes < best->bytes))
      best = &block;
  return best;
}

Buffer PinnedMemory::allocate(std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (Block* block = unused(bytes)) {
      block->used = true;
      return Buffer(block->data, bytes, *this);
    }
  }
  make_current(index_);
  std::list<Block> added(1, Block{.bytes = bytes, .used = true});  // first: nothing may throw once there is memory
  void*& data = added.front().data;
  const cudaError_t result = cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (result == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    throw DeviceError("cannot allocate " + std::to_string(bytes) +
                      " bytes of pinned host memory: out of memory; lower the batch size");
  }
  cuda_check(result, "cudaHostAlloc");
  const std::lock_guard lock(mutex_);
  blocks_.splice(blocks_.end(), added);
  return Buffer(blocks_.back().data, bytes, *this);
}

void PinnedMemory::release(void* data, std::size_t) noexcept {
  const std::lock_guard lock(mutex_);
  std::ranges::find(blocks_, data, &Block::data)->used = false;
}

namespace {

/// 12040 is "12.4".
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string why_no_index(int devices, int index) {
  return "no device cuda:" + std::to_string(index) + ": this process sees " + std::to_string(devices) +
         (devices == 1 ? " CUDA device, cuda:0" : " CUDA devices, cuda:0 to cuda:" + std::to_string(devices - 1)) +
         "; use one of these, and check whether CUDA_VISIBLE_DEVICES hides the other";
}

std::string why_none(const DeviceCount& count) {
  if (count.driver_version == 0) return "the NVIDIA driver is not installed (no libcuda.so.1 was found): install it";
  if (count.result == cudaErrorInsufficientDriver)
    return "the NVIDIA driver supports CUDA " + version_text(count.driver_version) + ", this build needs " +
           version_text(count.runtime_version) + ": update the driver";
  if (count.result == cudaErrorNoDevice || count.result == cudaSuccess)
    return "the NVIDIA driver (CUDA " + version_text(count.driver_version) +
           ") finds no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES";
  return std::string("the NVIDIA driver failed: ") + cudaGetErrorName(count.result) + ", " +
         cudaGetErrorString(count.result) + "; check whether nvidia-smi works";
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
  CudaRecording(Graph graph, std::shared_ptr<const DeviceFailure> failure)
      : graph_(std::move(graph)), failure_(std::move(failure)) {}
  void enqueue(Stream& stream) override {
    failure_->rethrow();
    graph_.enqueue(stream);
  }

 private:
  Graph graph_;
  std::shared_ptr<const DeviceFailure> failure_;
};

}  // namespace

CudaDevice::CudaDevice(int index) : index_(existing(index)), pool_(index), pinned_(index, failure_) {}

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

std::unique_ptr<Timer> CudaDevice::make_timer() { return std::make_unique<CudaTimer>(index_); }

std::unique_ptr<Recording> CudaDevice::record(Stream& stream, std::function<void()> enqueue_work) {
  failure_->rethrow();
  return std::make_unique<CudaRecording>(Graph::capture(stream, enqueue_work), failure_);
}

namespace {

cudaFuncAttributes attributes_of(const void* kernel) {
  cudaFuncAttributes attributes{};
  cuda_check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  return attributes;
}

int current_device_has(cudaDeviceAttr attribute) {
  int device = 0;
  cuda_check(cudaGetDevice(&device), "cudaGetDevice");
  int value = 0;
  cuda_check(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute");
  return value;
}

}  // namespace

void SharedMemoryLimit::raise_to(std::size_t dynamic_bytes, int device) {
  constexpr std::size_t kWithoutAsking = 48 * 1024;
  const std::lock_guard lock(mutex_);
  std::size_t& allowed = allowed_[device];
  if (dynamic_bytes <= allowed) return;
  if (attributes_of(kernel_).sharedSizeBytes + dynamic_bytes > kWithoutAsking)
    cuda_check(
        cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(dynamic_bytes)),
        "cudaFuncSetAttribute");
  allowed = dynamic_bytes;
}

LaunchReport::Resources launch_resources(const void* kernel, std::size_t threads, std::size_t dynamic_shared_bytes) {
  const cudaFuncAttributes attributes = attributes_of(kernel);
  int blocks = 0;
  cuda_check(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, static_cast<int>(threads), dynamic_shared_bytes),
      "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  const int warp = current_device_has(cudaDevAttrWarpSize);
  const int warps_of_block = (static_cast<int>(threads) + warp - 1) / warp;
  return {.registers = attributes.numRegs,
          .local_bytes = attributes.localSizeBytes,
          .static_shared_bytes = attributes.sharedSizeBytes,
          .resident_warps = blocks * warps_of_block,
          .most_warps = current_device_has(cudaDevAttrMaxThreadsPerMultiProcessor) / warp};
}

}  // namespace gradring::kernels
