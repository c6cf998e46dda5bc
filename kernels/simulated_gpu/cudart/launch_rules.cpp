// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/launch_rules.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/simulated_gpu/counters/card.h"
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

}  // namespace gradring::simulated_gpu
