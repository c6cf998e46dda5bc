// SPDX-License-Identifier: Apache-2.0
// Kernels: registration, attributes and launches.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/simt/engine/kernel_name.h"
#include "kernels/simulated_gpu/counters/occupancy.h"
#include "kernels/simulated_gpu/counters/summary.h"
#include "kernels/simulated_gpu/cudart/kernel_table.h"
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

void check_extents(const dim3& extents, const unsigned (&most)[3], const char* what) {
  const unsigned found[3] = {extents.x, extents.y, extents.z};
  for (int axis = 0; axis < 3; ++axis)
    if (found[axis] == 0 || found[axis] > most[axis])
      throw Misuse{cudaErrorInvalidConfiguration, joined(what, " of ", extents.x, " x ", extents.y, " x ", extents.z,
                                                         ", expected 1 to ", most[axis], " on axis ", "xyz"[axis])};
}

/// Threads of a block of this kernel at most.
unsigned most_threads(const ptx::Kernel& kernel) {
  return kernel.most_threads > 0 ? std::min(kernel.most_threads, kMostThreadsPerBlock) : kMostThreadsPerBlock;
}

/// Dynamic shared memory that blocks may have without asking for more.
std::size_t allowed_without_asking(const ptx::Kernel& kernel) {
  return kSharedWithoutAsking - std::min(kSharedWithoutAsking, kernel.static_shared_bytes);
}

/// What CUDA checks of a launch when it is enqueued. `allowed_shared`: dynamic shared memory of a block at most.
///
/// Errors    Misuse: cudaErrorInvalidConfiguration for extents, cudaErrorInvalidValue for the rest.
void check_launch(const cudaLaunchConfig_t& config, const ptx::Kernel& kernel, std::size_t allowed_shared) {
  check_extents(config.gridDim, kMostGridExtents, "a grid");
  check_extents(config.blockDim, kMostBlockExtents, "a block");
  const std::uint64_t threads = std::uint64_t{config.blockDim.x} * config.blockDim.y * config.blockDim.z;
  if (threads > kMostThreadsPerBlock)
    throw Misuse{cudaErrorInvalidConfiguration,
                 joined("a block of ", threads, " threads, expected at most ", kMostThreadsPerBlock)};
  if (threads > most_threads(kernel))
    throw Misuse{cudaErrorInvalidValue,
                 joined("a block of ", threads, " threads, but the kernel's launch bounds are ", most_threads(kernel))};
  if (config.dynamicSmemBytes > allowed_shared)
    throw Misuse{cudaErrorInvalidValue,
                 joined(config.dynamicSmemBytes, " bytes of dynamic shared memory, but blocks of ",
                        "the kernel may have ", allowed_shared, ": ask for more by cudaFuncSetAttribute")};
  if (config.numAttrs > 0) throw Misuse{cudaErrorNotSupported, "launch attributes, which are not simulated"};
}

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

/// That the GPU holds at once.
std::uint64_t most_resident_blocks(const Card& card, const LoadedKernel& code, const cudaLaunchConfig_t& config) {
  const Occupancy occupancy =
      occupancy_of(card, {.threads = config.blockDim.x * config.blockDim.y * config.blockDim.z,
                          .registers = registers_of(code),
                          .shared_bytes = code.kernel.static_shared_bytes + config.dynamicSmemBytes});
  return static_cast<std::uint64_t>(std::max(occupancy.blocks(), 1)) * static_cast<unsigned>(card.multiprocessors);
}

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
                                 .counted_multiprocessors = counted ? static_cast<unsigned>(card.multiprocessors) : 0,
                                 .findings = rt.faults.goes_on() ? &rt.faults : nullptr},
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

/// Of machine code that the program has for the device: registers and stack. Without it, they are 0 and PTX's local
/// memory.
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
      throw Misuse{cudaErrorNotSupported, joined("attribute ", attribute, ", which is not simulated")};
    const auto most = device.card().shared_bytes_per_block - static_cast<int>(code.kernel.static_shared_bytes);
    if (value < 0 || value > most)
      throw Misuse{cudaErrorInvalidValue, joined(value, " bytes of dynamic shared memory for ",
                                                 kernel_table().name_of(kernel), ", expected 0 to ", most)};
    call.rt.allowed_shared[{kernel, device.index()}] = value;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads,
                                                          std::size_t dynamic_shared) {
  return call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&](Call& call) {
    const Device& device = call.on_current();
    const LoadedKernel& code = loaded(kernel, device);
    if (threads <= 0) throw Misuse{cudaErrorInvalidValue, joined(threads, " threads")};
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
      throw Misuse{cudaErrorInvalidResourceHandle,
                   joined("a stream of ", device.name(), " while cuda:", this_thread().device, " is current")};
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
                                                                 .device = device.index(),
                                                                 .most_resident_blocks =
                                                                     most_resident_blocks(device.card(), code, *config)},
                                                        .parameters = packed(code.kernel, arguments)});
    launch->spec.parameters = {launch->parameters.front().bytes, code.kernel.parameter_bytes};
    call.rt.enqueue(stream, {.run = [&rt = call.rt, launch, &card = device.card()](CountedWork* counted) {
                      return execute(rt, *launch, card, counted);
                    }});
  });
}

// What the host code that nvcc writes calls: before main, and for kernel<<<...>>>(...).

void** __cudaRegisterFatBinary(void* wrapper) { return kernel_table().add_binary(wrapper); }
void __cudaRegisterFatBinaryEnd(void**) {}
/// At the end of the process.
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void** binary, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  kernel_table().add_kernel(binary, host, name);
}

/// kernel<<<...>>> is not simulated, as it is for the default stream; our code launches by cudaLaunchKernelEx.
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*) {
  return misused("kernel<<<...>>>", {cudaErrorNotSupported, "is not simulated: launch by cudaLaunchKernelEx"});
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                               cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelExC(&config, kernel, arguments);
}
}
