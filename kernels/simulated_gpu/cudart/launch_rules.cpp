// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/launch_rules.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/simulated_gpu/cudart/error_text.h"

namespace gradring::simulated_gpu {
namespace {

void check_extents(const dim3& extents, const unsigned (&most)[3], const char* what) {
  const unsigned found[3] = {extents.x, extents.y, extents.z};
  for (int axis = 0; axis < 3; ++axis)
    if (found[axis] == 0 || found[axis] > most[axis])
      throw Misuse{cudaErrorInvalidConfiguration, std::string(what) + " of " + std::to_string(extents.x) + " x " +
                                                      std::to_string(extents.y) + " x " + std::to_string(extents.z) +
                                                      ", expected 1 to " + std::to_string(most[axis]) + " on axis " +
                                                      "xyz"[axis]};
}

int rounded_up(std::size_t bytes, std::size_t unit) { return static_cast<int>((bytes + unit - 1) / unit * unit); }

}  // namespace

unsigned most_threads(const ptx::Kernel& kernel) {
  return kernel.most_threads > 0 ? std::min(kernel.most_threads, kMostThreadsPerBlock) : kMostThreadsPerBlock;
}

std::size_t allowed_without_asking(const ptx::Kernel& kernel) {
  return kSharedWithoutAsking - std::min(kSharedWithoutAsking, kernel.static_shared_bytes);
}

void check_launch(const cudaLaunchConfig_t& config, const ptx::Kernel& kernel, std::size_t allowed_shared) {
  check_extents(config.gridDim, kMostGridExtents, "a grid");
  check_extents(config.blockDim, kMostBlockExtents, "a block");
  const std::uint64_t threads = std::uint64_t{config.blockDim.x} * config.blockDim.y * config.blockDim.z;
  if (threads > kMostThreadsPerBlock)
    throw Misuse{
        cudaErrorInvalidConfiguration,
        "a block of " + std::to_string(threads) + " threads, expected at most " + std::to_string(kMostThreadsPerBlock)};
  if (threads > most_threads(kernel))
    throw Misuse{cudaErrorInvalidValue, "a block of " + std::to_string(threads) +
                                            " threads, but the kernel's launch bounds are " +
                                            std::to_string(most_threads(kernel))};
  if (config.dynamicSmemBytes > allowed_shared)
    throw Misuse{cudaErrorInvalidValue, std::to_string(config.dynamicSmemBytes) +
                                            " bytes of dynamic shared memory, but blocks of " + "the kernel may have " +
                                            std::to_string(allowed_shared) + ": ask for more by cudaFuncSetAttribute"};
  if (config.numAttrs > 0) throw Misuse{cudaErrorNotSupported, "launch attributes, which are not simulated"};
}

int resident_blocks(const Card& card, const ptx::Kernel& kernel, unsigned threads, std::size_t dynamic_shared) {
  constexpr std::size_t kSharedUnit = 128;  // in which CUDA allocates shared memory
  if (threads > most_threads(kernel)) return 0;
  const std::size_t shared_bytes = kernel.static_shared_bytes + dynamic_shared;
  if (shared_bytes > static_cast<std::size_t>(card.shared_bytes_per_block)) return 0;
  const int by_threads = kMostThreadsPerMultiprocessor / rounded_up(threads, kWarpThreads);
  const int by_shared =
      card.shared_bytes_per_multiprocessor / rounded_up(shared_bytes + kReservedSharedBytes, kSharedUnit);
  return std::min({by_threads, by_shared, kMostBlocksPerMultiprocessor});
}

}  // namespace gradring::simulated_gpu
