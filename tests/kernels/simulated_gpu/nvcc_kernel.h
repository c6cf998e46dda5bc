// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "kernels/simulated_gpu/machine/launch.h"
#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::simulated_gpu {

/// A kernel of PTX that nvcc made.
class NvccKernel {
 public:
  NvccKernel(std::string_view text, std::string_view name)
      : module_(std::string(text)), executable_(module_, *module_.kernel(name)) {}

  /// `spec` without its parameters, which are `arguments`, in order.
  template <class... Arguments>
  Counters run(GlobalMemory& memory, LaunchSpec spec, const ExecutionOptions& options, Arguments... arguments) const {
    alignas(128) std::byte bytes[256];
    std::size_t index = 0;
    (std::memcpy(bytes + executable_.kernel().parameters[index++].offset, &arguments, sizeof arguments), ...);
    spec.parameters = {bytes, executable_.kernel().parameter_bytes};
    return simulated_gpu::run(executable_, spec, memory, options);
  }

 private:
  ptx::Module module_;
  Executable executable_;
};

}  // namespace gradring::simulated_gpu
