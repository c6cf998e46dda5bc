// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/kernel_launch.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/simt/engine/kernel_name.h"
#include "kernels/simulated_gpu/counters/summary.h"
#include "kernels/simulated_gpu/machine/launch.h"

namespace gradring::simulated_gpu {
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

/// Dynamic shared memory that blocks may have without asking for more.
std::size_t allowed_without_asking(const ptx::Kernel& kernel) {
  return kSharedWithoutAsking - std::min(kSharedWithoutAsking, kernel.static_shared_bytes);
}

/// Hints of how fast something is to be pass.
void check_attribute(const cudaLaunchAttribute& attribute) {
  switch (attribute.id) {
    case cudaLaunchAttributeIgnore:
    case cudaLaunchAttributeAccessPolicyWindow:
    case cudaLaunchAttributeCooperative:
    case cudaLaunchAttributeSynchronizationPolicy:
    case cudaLaunchAttributeClusterSchedulingPolicyPreference:
    case cudaLaunchAttributeProgrammaticStreamSerialization:
    case cudaLaunchAttributePriority:
    case cudaLaunchAttributeMemSyncDomainMap:
    case cudaLaunchAttributeMemSyncDomain:
    case cudaLaunchAttributePreferredSharedMemoryCarveout: return;
    case cudaLaunchAttributeClusterDimension: return;
    default: throw Misuse{cudaErrorNotSupported, joined("launch attribute ", attribute.id, ", which is not simulated")};
  }
}

/// The value of the last attribute of that kind; null without one.
const cudaLaunchAttributeValue* attribute_of(const cudaLaunchConfig_t& config, cudaLaunchAttributeID id) {
  const cudaLaunchAttributeValue* found = nullptr;
  for (unsigned i = 0; i < config.numAttrs; ++i)
    if (config.attrs[i].id == id) found = &config.attrs[i].val;
  return found;
}

/// Blocks of a cluster on each axis.
///
/// Errors    Misuse for a card without clusters, and for a cluster that is too large or does not divide the grid.
Extent cluster_of(const cudaLaunchConfig_t& config, const Device& device) {
  Extent cluster;
  if (const auto* const asked = attribute_of(config, cudaLaunchAttributeClusterDimension))
    cluster = {asked->clusterDim.x, asked->clusterDim.y, asked->clusterDim.z};
  if (cluster.count() == 1) return cluster;
  if (device.card().major < 9)
    throw Misuse{cudaErrorNotSupported, "clusters, which cards below compute capability 9.0 do not have"};
  if (cluster.count() == 0 || cluster.count() > ptx::kMostBlocksOfACluster)
    throw Misuse{cudaErrorInvalidClusterSize,
                 joined("a cluster of ", cluster.count(), " blocks, expected 1 to ", ptx::kMostBlocksOfACluster)};
  if (config.gridDim.x % cluster.x != 0 || config.gridDim.y % cluster.y != 0 || config.gridDim.z % cluster.z != 0)
    throw Misuse{cudaErrorInvalidConfiguration, "a grid that clusters do not divide"};
  return cluster;
}

bool is_cooperative(const cudaLaunchConfig_t& config) {
  const auto* const asked = attribute_of(config, cudaLaunchAttributeCooperative);
  return asked != nullptr && asked->cooperative != 0;
}

/// Programmatic dependent launch. It begins after the work before it all the same, which is one of the orders that CUDA
/// allows.
bool begins_early(const cudaLaunchConfig_t& config) {
  const auto* const asked = attribute_of(config, cudaLaunchAttributeProgrammaticStreamSerialization);
  return asked != nullptr && asked->programmaticStreamSerializationAllowed != 0;
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
  for (unsigned i = 0; i < config.numAttrs; ++i) check_attribute(config.attrs[i]);
}

/// That the GPU holds at once.
std::uint64_t most_resident_blocks(const Device& device, const LoadedKernel& code, const cudaLaunchConfig_t& config) {
  const unsigned threads = config.blockDim.x * config.blockDim.y * config.blockDim.z;
  const Occupancy occupancy = occupancy_of(device, code, threads, config.dynamicSmemBytes);
  return static_cast<std::uint64_t>(occupancy.blocks()) * static_cast<unsigned>(device.card().multiprocessors);
}

/// The blocks of a cooperative launch wait for each other, so all of them must be resident.
void check_cooperative(const cudaLaunchConfig_t& config, const Device& device, const LoadedKernel& code) {
  const std::uint64_t blocks = std::uint64_t{config.gridDim.x} * config.gridDim.y * config.gridDim.z;
  const std::uint64_t most = most_resident_blocks(device, code, config);
  if (blocks > most)
    throw Misuse{cudaErrorCooperativeLaunchTooLarge,
                 joined("a cooperative launch of ", blocks, " blocks, of which the card holds ", most, " at once")};
}

/// As they are in the memory of the kernel.
std::vector<Launch::Piece> packed(const ptx::Kernel& kernel, void** arguments) {
  std::vector<Launch::Piece> pieces(kernel.parameter_bytes / Launch::kAlignment + 1, Launch::Piece{});
  auto* const bytes = reinterpret_cast<std::byte*>(pieces.data());
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i)
    std::memcpy(bytes + kernel.parameters[i].offset, arguments[i], kernel.parameters[i].bytes);
  return pieces;
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
  rt.running = &code.kernel;
  const Counters counters = run(*code.executable, launch.spec, rt.memory,
                                {.seed = rt.seed + rt.launches++,
                                 .threads = rt.options.threads,
                                 .checks_races = rt.options.checks_races,
                                 .counted_multiprocessors = counted ? static_cast<unsigned>(card.multiprocessors) : 0,
                                 .functions = &rt.functions,
                                 .findings = rt.faults.goes_on() ? &rt.faults : nullptr},
                                &accesses);
  rt.running = nullptr;
  rt.memory.note_kernel(
      accesses, [executable = code.executable](std::uint32_t position) { return executable->location_of(position); });
  if (counted) {
    counted->name = simt::short_name_of(simt::demangled(std::string(code.kernel.name).c_str()));
    counted->launch = summary_of({.module = code.module,
                                  .kernel = code.kernel,
                                  .code = code.code,
                                  .spec = launch.spec,
                                  .counters = counters,
                                  .card = card,
                                  .lists = rt.counting.lists(),
                                  .cubin = code.cubin},
                                 counted->name);
    counted->bound_seconds = counted->launch->bound.seconds();
  }
  return counted_seconds(counters, card);
}

Extent extent_of(const dim3& extents) { return {extents.x, extents.y, extents.z}; }

}  // namespace

const LoadedKernel& loaded(const void* kernel, const Device& device) {
  return kernel_table().load(kernel, device.card().compute_capability());
}

unsigned most_threads(const ptx::Kernel& kernel) {
  return kernel.most_threads > 0 ? std::min(kernel.most_threads, kMostThreadsPerBlock) : kMostThreadsPerBlock;
}

std::size_t allowed_shared(const Runtime& rt, const void* kernel, const LoadedKernel& code, int device) {
  const auto asked = rt.allowed_shared.find({kernel, device});
  return asked == rt.allowed_shared.end() ? allowed_without_asking(code.kernel)
                                          : static_cast<std::size_t>(asked->second);
}

int registers_of(const LoadedKernel& code) { return code.code ? code.code->registers : 0; }

Occupancy occupancy_of(const Device& device, const LoadedKernel& code, unsigned threads, std::size_t dynamic_shared) {
  return occupancy_of(device.card(), {.threads = threads,
                                      .registers = registers_of(code),
                                      .shared_bytes = code.kernel.static_shared_bytes + dynamic_shared});
}

StreamWork launch_work(Runtime& rt, const Device& device, const cudaLaunchConfig_t& config, const void* kernel,
                       void** arguments) {
  const LoadedKernel& code = loaded(kernel, device);
  try {
    check_launch(config, code.kernel, allowed_shared(rt, kernel, code, device.index()));
    if (is_cooperative(config)) check_cooperative(config, device, code);
  } catch (Misuse& misuse) {
    misuse.text = kernel_table().name_of(kernel) + ": " + misuse.text;
    throw;
  }
  const auto launch = std::make_shared<Launch>(
      Launch{.kernel = code,
             .spec = {.grid = extent_of(config.gridDim),
                      .block = extent_of(config.blockDim),
                      .dynamic_shared_bytes = config.dynamicSmemBytes,
                      .parameters = {},
                      .device = device.index(),
                      .most_resident_blocks = std::max<std::uint64_t>(most_resident_blocks(device, code, config), 1),
                      .cluster = cluster_of(config, device),
                      .is_cooperative = is_cooperative(config),
                      .begins_early = begins_early(config)},
             .parameters = packed(code.kernel, arguments)});
  if (!code.module.variables().empty()) launch->spec.variables = rt.variables(code.module, device.index());
  launch->spec.parameters = {launch->parameters.front().bytes, code.kernel.parameter_bytes};
  return {
      .run = [&rt, launch, &card = device.card()](CountedWork* counted) { return execute(rt, *launch, card, counted); },
      .begins_early = launch->spec.begins_early};
}

}  // namespace gradring::simulated_gpu
