// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gradring::simulated_gpu {

/// What a process simulates.
struct SimulationOptions {
  std::string card = "h100";  ///< a name of kCardNames
  int devices = 8;            ///< as many as a node of such cards has
  /// Of the order of work that CUDA leaves open: of streams, of the nodes of a graph, of blocks and warps.
  std::uint64_t seed = 0;
  unsigned threads = 1;  ///< of the host, which execute kernels
  bool checks_races = true;
  /// How long enqueued work waits for a call that asks for it, before it runs all the same.
  std::chrono::milliseconds hold{20};
};

/// Raise it with every change of SimulatedGpu or SimulationOptions: program and module have their own copy.
inline constexpr int kSimulatedGpuVersion = 1;

/// What libgradring_simulated_gpu.so exports besides the entry of the CUDA module: this stand-in for the CUDA runtime.
struct SimulatedGpu {
  int version = kSimulatedGpuVersion;  ///< always the first member
  /// Before the first call of the runtime; later calls have no effect.
  ///
  /// Errors    InvalidArgument if the card is unknown, or a number is out of range.
  void (*configure)(const SimulationOptions& options) = nullptr;
  /// What kernels and calls did that they must not, in the order in which it was seen. Each was printed to stderr.
  std::vector<std::string> (*faults)() = nullptr;
  /// For stand-ins of libraries that enqueue work of their own: cudaLaunchHostFunc by its arguments and result.
  int (*launch_host_function)(void* stream, void (*function)(void*), void* argument) = nullptr;
  /// The same libraries: their host functions wrote this memory of a device, so that kernels may read it.
  void (*note_written)(const void* data, std::size_t bytes) = nullptr;
};

using SimulatedGpuEntry = const SimulatedGpu* (*)();
inline constexpr const char* kSimulatedGpuEntry = "gradring_simulated_gpu";

}  // namespace gradring::simulated_gpu
