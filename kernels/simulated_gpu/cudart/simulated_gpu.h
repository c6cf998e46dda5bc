// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/simulated_gpu/counters/launch_counts.h"
#include "kernels/simulated_gpu/machine/finding_options.h"

namespace gradring::simulated_gpu {

class PageableMemory;

/// What a process simulates.
struct SimulationOptions {
  std::string card = "h100";  ///< a name of cards(), or a file of one (cards/card.h)
  int devices = 8;            ///< as many as a node of such cards has
  /// Of the order of work that CUDA leaves open: of streams, of the nodes of a graph, of blocks and warps.
  std::uint64_t seed = 0;
  unsigned threads = 1;  ///< of the host, which execute kernels
  bool checks_races = true;
  FindingOptions findings;
  /// The rules of gradring's own CUDA code, which CUDA does not have: no default stream, no kernel<<<...>>>, no context
  /// that a thread opens by chance.
  bool is_strict = true;
  bool counts = false;  ///< from the begin, as begin_counting()
  /// Called with the JSON of each finding that is new, also of those that are suppressed; null: nobody asks.
  void (*on_finding)(const std::string& json) = nullptr;
  /// How long enqueued work waits for a call that asks for it, before it runs all the same.
  std::chrono::milliseconds hold{20};
  /// Memory of the host that kernels may use though it was not given to CUDA; null: a fault, as on most machines.
  PageableMemory* pageable = nullptr;
};

/// Writes to a range that is watched.
struct WatchedWrites {
  std::uint64_t count = 0;
  /// Who wrote last: "thread (3, 0, 0) of block (1, 0, 0)", kernel, line and instruction; or "cudaMemcpyAsync".
  std::string last;
};

/// Raise it with every change of SimulatedGpu, SimulationOptions or CountedWork: program and module have their own
/// copy.
inline constexpr int kSimulatedGpuVersion = 11;

/// What libgradring_simulated_gpu.so exports besides the entry of the CUDA module: this stand-in for the CUDA runtime.
struct SimulatedGpu {
  int version = kSimulatedGpuVersion;  ///< always the first member
  /// Before the first call of the runtime; later calls have no effect.
  ///
  /// Errors    InvalidArgument if the card is unknown, or a number is out of range.
  void (*configure)(const SimulationOptions& options) = nullptr;
  /// After configure(): that the module has PTX for such a card.
  ///
  /// Errors    InvalidArgument: for which it has, and how to build it.
  void (*check_program)() = nullptr;
  /// What kernels and calls did that they must not, in the order in which it was seen. Each was printed to stderr.
  std::vector<std::string> (*faults)() = nullptr;

  /// Notes from now on who writes these bytes, of all GPUs; one range at a time. No bytes: nothing is watched.
  void (*watch)(const void* data, std::size_t bytes) = nullptr;
  /// Since the last call of watch(); once the host has waited for the work.
  WatchedWrites (*watched)() = nullptr;
  /// Kernels executed so far. Each is executed in an order of its own, drawn from the seed and this number.
  std::uint64_t (*launches)() = nullptr;
  /// Sets that number: the next kernel is executed in the order that the one with this number had.
  void (*repeat_from)(std::uint64_t launch) = nullptr;
  /// Counts what is enqueued from now on: executions are slower then. `lists`: each kernel's instructions, too.
  void (*begin_counting)(bool lists) = nullptr;
  /// Waits for all work, and returns what was enqueued since, in that order. Of a device that failed, work may lack its
  /// counts.
  std::vector<CountedWork> (*end_counting)() = nullptr;
};

using SimulatedGpuEntry = const SimulatedGpu* (*)();
inline constexpr const char* kSimulatedGpuEntry = "gradring_simulated_gpu";

}  // namespace gradring::simulated_gpu
