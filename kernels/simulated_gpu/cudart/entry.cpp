// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "kernels/simulated_gpu/cudart/runtime.h"
#include "kernels/simulated_gpu/cudart/simulated_gpu.h"

extern "C" __attribute__((visibility("default"))) const gradring::simulated_gpu::SimulatedGpu*
gradring_simulated_gpu() {
  using namespace gradring::simulated_gpu;
  static const SimulatedGpu simulated_gpu = {
      .configure = &configure,
      .faults = [] { return runtime().faults.all(); },
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
