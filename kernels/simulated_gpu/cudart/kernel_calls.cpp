// SPDX-License-Identifier: Apache-2.0
// Kernels: attributes and launches.
#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/simt/engine/kernel_name.h"
#include "kernels/simulated_gpu/counters/card.h"
#include "kernels/simulated_gpu/counters/summary.h"
#include "kernels/simulated_gpu/cudart/kernel_table.h"
#include "kernels/simulated_gpu/cudart/launch_rules.h"
#include "kernels/simulated_gpu/cudart/runtime.h"
#include "kernels/simulated_gpu/machine/launch.h"

using namespace gradring;
using namespace gradring::simulated_gpu;

namespace {

/// Of a launch, besides what its warps execute.
constexpr double kLeastSeconds = 2e-6;

/// A launch, kept until it is executed, by a graph again and again.
struct Launch {
  static constexpr std::size_t kAlignment = 128;
  struct alignas(kAlignment) Piece {
    std::byte bytes[kAlignment];
  };

  const LoadedKernel& kernel;
  LaunchSpec spec;
  std::vector<Piece> parameters;
};

const LoadedKernel& loaded(const void* kernel, const Device& device) {
  return kernel_table().load(kernel, device.card().compute_capability());
}

/// As they are in the memory of the kernel.
std::vector<Launch::Piece> packed(const ptx::Kernel& kernel, void** arguments) {
  std::vector<Launch::Piece> pieces(kernel.parameter_bytes / Launch::kAlignment + 1, Launch::Piece{});
  auto* const bytes = reinterpret_cast<std::byte*>(pieces.data());
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i)
    std::memcpy(bytes + kernel.parameters[i].offset, arguments[i], kernel.parameters[i].bytes);
  return pieces;
}

std::size_t allowed_shared(const Runtime& rt, const void* kernel, const LoadedKernel& code, int device) {
  const auto asked = rt.allowed_shared.find({kernel, device});
  return asked == rt.allowed_shared.end() ? allowed_without_asking(code.kernel)
                                          : static_cast<std::size_t>(asked->second);
}

/// Of a thread; 0: not known.
int registers_of(const LoadedKernel& code) { return code.code ? code.code->registers : 0; }

double counted_seconds(const Counters& counters, const Card& card) {
  double instructions = 0;
  for (const Counters::Instruction& instruction : counters.instructions)
    instructions += static_cast<double>(instruction.executions);
  return kLeastSeconds + instructions / (kSchedulers * card.multiprocessors * card.clock_hertz);
}

double execute(Runtime& rt, const Launch& launch, const Card& card, CountedWork* counted) {
  const LoadedKernel& code = launch.kernel;
  AccessLog accesses;
  const Counters counters = run(*code.executable, launch.spec, rt.memory,
                                {.seed = rt.seed + rt.launches++,
                                 .threads = rt.options.threads,
                                 .checks_races = rt.options.checks_races,
                                 .counted_multiprocessors = counted ? static_cast<unsigned>(card.multiprocessors) : 0},
                                &accesses);
  rt.memory.note_kernel(
      accesses, [executable = code.executable](std::uint32_t position) { return executable->describe(position); });
  if (counted) {
    counted->name = simt::short_name_of(simt::demangled(std::string(code.kernel.name).c_str()));
    counted->launch = summary_of({.module = code.module,
                                  .kernel = code.kernel,
                                  .code = code.code,
                                  .spec = launch.spec,
                                  .counters = counters,
                                  .card = card},
                                 counted->name);
    counted->bound_seconds = counted->launch->bound.seconds();
  }
  return counted_seconds(counters, card);
}

Extent extent_of(const dim3& extents) { return {extents.x, extents.y, extents.z}; }

}  // namespace

extern "C" {

/// Of machine code that the program has for the device: registers and stack. Without it, they are 0 and PTX's local memory.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  return call("cudaFuncGetAttributes", [&](Call& call) {
    const Device& device = call.on_current();
    const LoadedKernel& code = loaded(kernel, device);
    *attributes = {};
    attributes->sharedSizeBytes = code.kernel.static_shared_bytes;
    attributes->localSizeBytes = code.code ? code.code->stack_bytes : code.kernel.local_bytes;
    attributes->numRegs = registers_of(code);
    attributes->maxThreadsPerBlock = static_cast<int>(most_threads(code.kernel));
    attributes->ptxVersion = code.compute_capability;
    attributes->binaryVersion = device.card().compute_capability();
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(allowed_shared(call.rt, kernel, code, device.index()));
    attributes->preferredShmemCarveout = -1;
  });
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  return call("cudaFuncSetAttribute", [&](Call& call) {
    const Device& device = call.on_current();
    const LoadedKernel& code = loaded(kernel, device);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
      throw Misuse{cudaErrorNotSupported, "attribute " + std::to_string(attribute) + ", which is not simulated"};
    const auto most = device.card().shared_bytes_per_block - static_cast<int>(code.kernel.static_shared_bytes);
    if (value < 0 || value > most)
      throw Misuse{cudaErrorInvalidValue, std::to_string(value) + " bytes of dynamic shared memory for " +
                                              kernel_table().name_of(kernel) + ", expected 0 to " +
                                              std::to_string(most)};
    call.rt.allowed_shared[{kernel, device.index()}] = value;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads,
                                                          std::size_t dynamic_shared) {
  return call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&](Call& call) {
    const Device& device = call.on_current();
    const LoadedKernel& code = loaded(kernel, device);
    if (threads <= 0) throw Misuse{cudaErrorInvalidValue, std::to_string(threads) + " threads"};
    const auto count = static_cast<unsigned>(threads);
    const Occupancy occupancy =
        occupancy_of(device.card(), {.threads = count,
                                     .registers = registers_of(code),
                                     .shared_bytes = code.kernel.static_shared_bytes + dynamic_shared});
    *blocks = count > most_threads(code.kernel) ? 0 : occupancy.blocks();
  });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** arguments) {
  return call("cudaLaunchKernelExC", [&](Call& call) {
    Stream& stream = call.stream(config->stream);
    const Device& device = call.on(stream.device);
    if (stream.device != this_thread().device)
      throw Misuse{cudaErrorInvalidResourceHandle, "a stream of " + device.name() + " while cuda:" +
                                                       std::to_string(this_thread().device) + " is current"};
    const LoadedKernel& code = loaded(kernel, device);
    try {
      check_launch(*config, code.kernel, allowed_shared(call.rt, kernel, code, device.index()));
    } catch (Misuse& misuse) {
      misuse.text = kernel_table().name_of(kernel) + ": " + misuse.text;
      throw;
    }
    const auto launch = std::make_shared<Launch>(Launch{.kernel = code,
                                                        .spec = {.grid = extent_of(config->gridDim),
                                                                 .block = extent_of(config->blockDim),
                                                                 .dynamic_shared_bytes = config->dynamicSmemBytes,
                                                                 .parameters = {},
                                                                 .device = device.index()},
                                                        .parameters = packed(code.kernel, arguments)});
    launch->spec.parameters = {launch->parameters.front().bytes, code.kernel.parameter_bytes};
    call.rt.enqueue(stream, {.run = [&rt = call.rt, launch, &card = device.card()](CountedWork* counted) {
                      return execute(rt, *launch, card, counted);
                    }});
  });
}
}
