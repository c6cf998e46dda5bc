// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <string>
#include <utility>

#include "kernels/simulated_gpu/cudart/device.h"
#include "kernels/simulated_gpu/cudart/host_function.h"
#include "kernels/simulated_gpu/cudart/runtime.h"
#include "kernels/simulated_gpu/cudart/simulated_gpu.h"

extern "C" __attribute__((visibility("default"))) const gradring::simulated_gpu::SimulatedGpu*
gradring_simulated_gpu() {
  using namespace gradring::simulated_gpu;
  static const SimulatedGpu simulated_gpu = {
      .configure = &configure,
      .faults = [] { return runtime().faults.all(); },
      .launch_host_function =
          [](void* stream, const char* name, void (*function)(void*), void* argument) {
            return static_cast<int>(launch_host_function(name, static_cast<cudaStream_t>(stream), function, argument));
          },
      .note_use =
          [](const char* call, const void* data, std::size_t bytes, bool is_write) {
            if (bytes == 0) return;
            const auto address = reinterpret_cast<std::uintptr_t>(data);
            GlobalMemory& memory = runtime().memory;
            if (!memory.find(address, bytes))
              throw IllegalAccess(std::string(call) + (is_write ? " writes " : " reads ") +
                                  memory.describe(address, bytes));
            memory.note_use(address, bytes, is_write, call);
            if (is_write) memory.mark_written(address, bytes);
          },
      .watch = [](const void* data,
                  std::size_t bytes) { runtime().memory.watch().begin(reinterpret_cast<std::uintptr_t>(data), bytes); },
      .watched =
          [] {
            WriteWatch::Writes writes = runtime().memory.watch().writes();
            return WatchedWrites{writes.count, std::move(writes.last)};
          },
      .launches = [] { return runtime().launches.load(); },
      .repeat_from = [](std::uint64_t launch) { runtime().launches = launch; },
      .begin_counting =
          [] {
            Runtime& rt = runtime();
            const std::lock_guard lock(rt.mutex);
            rt.counting.begin();
          },
      .end_counting =
          [] {
            Runtime& rt = runtime();
            rt.scheduler.wait_for_all();
            const std::lock_guard lock(rt.mutex);
            return rt.counting.end();
          }};
  return &simulated_gpu;
}
