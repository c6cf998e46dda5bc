// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <link.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/simulated_gpu/cudart/simulated_gpu.h"
#include "tests/train/core/cuda_module/stand_in/stream_work.h"

namespace gradring::tests {
namespace {

using simulated_gpu::SimulatedGpu;

/// The path of the module, which the program has opened.
std::string module_file() {
  std::string file;
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* found) {
        const std::string_view name = object->dlpi_name;
        if (name.ends_with("libgradring_simulated_gpu.so")) *static_cast<std::string*>(found) = name;
        return 0;
      },
      &file);
  return file;
}

const SimulatedGpu& simulator() {
  static const SimulatedGpu& opened = []() -> const SimulatedGpu& {
    void* const module = ::dlopen(module_file().c_str(), RTLD_NOW | RTLD_NOLOAD);
    return *reinterpret_cast<simulated_gpu::SimulatedGpuEntry>(::dlsym(module, simulated_gpu::kSimulatedGpuEntry))();
  }();
  return opened;
}

/// Graphs may call work until the process ends.
std::function<void()>* kept(std::function<void()> work) {
  static std::mutex mutex;
  static auto* const all = new std::vector<std::unique_ptr<std::function<void()>>>;
  const std::lock_guard lock(mutex);
  return all->emplace_back(std::make_unique<std::function<void()>>(std::move(work))).get();
}

}  // namespace

void enqueue(void* stream, std::function<void()> work) {
  simulator().launch_host_function(
      stream, "NCCL", [](void* function) { (*static_cast<std::function<void()>*>(function))(); },
      kept(std::move(work)));
}

void note_use(const char* call, const void* data, std::size_t bytes, bool is_write) {
  simulator().note_use(call, data, bytes, is_write);
}

}  // namespace gradring::tests

/// kStandInMark of comm/transports/nccl/nccl_api.h.
extern "C" const int gradring_nccl_for_simulated_gpus;
const int gradring_nccl_for_simulated_gpus = 1;
