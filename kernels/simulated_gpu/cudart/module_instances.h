// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/simulated_gpu/cudart/mapped_ranges.h"
#include "kernels/simulated_gpu/memory/global_memory.h"
#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::simulated_gpu {

/// The variables of modules in the memory of devices, made when a module is used on a device for the first time.
///
/// Threads   the runtime's lock guards it.
class ModuleInstances {
 public:
  ModuleInstances(GlobalMemory& memory, MappedRanges& addresses) : memory_(memory), addresses_(addresses) {}

  /// The addresses of a module's variables on a device, by their index. Valid until the runtime ends.
  ///
  /// Errors    Misuse: a variable that no module defines, or no memory.
  const std::vector<std::uint64_t>& variables(const ptx::Module& module, int device);

  /// Whether it is in a managed variable.
  bool is_managed(const void* address) const;
  /// The device's variables are gone; they are made again with their initial values.
  void forget(int device);

 private:
  std::uint64_t allocate(const ptx::Module& module, const ptx::ModuleVariable& variable, int device);
  /// The address of a variable that `module` declares as extern.
  std::uint64_t definition_of(const ptx::Module& module, const ptx::ModuleVariable& variable, int device);

  GlobalMemory& memory_;
  MappedRanges& addresses_;
  std::map<std::pair<const ptx::Module*, int>, std::vector<std::uint64_t>> instances_;
  std::map<std::pair<const ptx::Module*, std::string>, std::uint64_t> managed_;
};

}  // namespace gradring::simulated_gpu
