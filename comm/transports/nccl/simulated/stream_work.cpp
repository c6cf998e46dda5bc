// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/nccl/nccl_api.h"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/simulated_gpu/cudart/host_function.h"

namespace gradring::comm::nccl {
namespace {

/// Graphs may call work until the process ends.
std::function<void()>* kept(std::function<void()> work) {
  static std::mutex mutex;
  static auto* const all = new std::vector<std::unique_ptr<std::function<void()>>>;
  const std::lock_guard lock(mutex);
  return all->emplace_back(std::make_unique<std::function<void()>>(std::move(work))).get();
}

}  // namespace

void enqueue(void* stream, std::function<void()> work) {
  simulated_gpu::launch_host_function(
      "NCCL", static_cast<cudaStream_t>(stream),
      [](void* function) { (*static_cast<std::function<void()>*>(function))(); }, kept(std::move(work)));
}

void note_use(const char* call, const void* data, std::size_t bytes, bool is_write) {
  simulated_gpu::note_use(call, data, bytes, is_write);
}

}  // namespace gradring::comm::nccl
