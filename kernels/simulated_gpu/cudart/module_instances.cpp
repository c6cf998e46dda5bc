// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/module_instances.h"

#include <algorithm>
#include <cstring>

#include "kernels/simulated_gpu/cudart/error_text.h"
#include "kernels/simulated_gpu/cudart/kernel_table.h"

namespace gradring::simulated_gpu {
namespace {

void write_initial(const ptx::Module& module, const ptx::ModuleVariable& variable, std::uint64_t address,
                   const std::vector<std::uint64_t>& addresses) {
  auto* const data = reinterpret_cast<std::byte*>(address);
  std::ranges::copy(variable.initial, data);
  for (const ptx::ModuleVariable::Reference& reference : variable.references) {
    const auto index = module.variable_named(reference.name);
    const std::uint64_t named = index ? addresses[*index] : module.function_address(reference.name);
    if (named == 0)
      throw Misuse{cudaErrorNotSupported, joined("the initial value of ", variable.name, " is the address of ",
                                                 reference.name, ", which the module does not define")};
    const std::uint64_t value = named + static_cast<std::uint64_t>(reference.offset);
    std::memcpy(data + reference.at, &value, sizeof value);
  }
}

}  // namespace

std::uint64_t ModuleInstances::definition_of(const ptx::Module& module, const ptx::ModuleVariable& variable,
                                             int device) {
  const auto definition = kernel_table().definition(module, variable.name);
  if (!definition)
    throw Misuse{cudaErrorNotSupported, joined("variable ", variable.name, " is extern, and no module defines it")};
  return variables(definition->module, device)[definition->index];
}

std::uint64_t ModuleInstances::allocate(const ptx::Module& module, const ptx::ModuleVariable& variable, int device) {
  const std::size_t bytes = std::max<std::size_t>(variable.bytes, 1);
  void* const data = addresses_.map(bytes);
  if (data == nullptr) throw Misuse{cudaErrorMemoryAllocation, joined("no memory for variable ", variable.name)};
  memory_.add(data, bytes, device, variable.is_managed);
  const auto address = reinterpret_cast<std::uint64_t>(data);
  memory_.mark_written(address, bytes);  // zeros, without an initial value
  if (variable.is_managed) managed_[{&module, std::string(variable.name)}] = address;
  return address;
}

bool ModuleInstances::is_managed(const void* address) const {
  const std::uintptr_t begin = addresses_.begin_of(address);
  return std::ranges::any_of(managed_, [&](const auto& variable) { return variable.second == begin; });
}

void ModuleInstances::forget(int device) {
  for (auto instance = instances_.begin(); instance != instances_.end();) {
    const auto& [module, of_device] = instance->first;
    if (of_device != device) {
      ++instance;
      continue;
    }
    for (std::size_t i = 0; i < instance->second.size(); ++i) {
      if (module->variables()[i].is_managed || module->variables()[i].is_extern) continue;
      memory_.remove(reinterpret_cast<void*>(instance->second[i]));
      addresses_.release(reinterpret_cast<void*>(instance->second[i]));
    }
    instance = instances_.erase(instance);
  }
}

const std::vector<std::uint64_t>& ModuleInstances::variables(const ptx::Module& module, int device) {
  const std::pair key(&module, device);
  if (const auto known = instances_.find(key); known != instances_.end()) return known->second;
  const std::vector<ptx::ModuleVariable>& all = module.variables();
  std::vector<std::uint64_t> own;  // 0 for an extern variable
  std::vector<bool> is_new;
  for (const ptx::ModuleVariable& variable : all) {
    const auto managed = managed_.find({&module, std::string(variable.name)});
    is_new.push_back(!variable.is_extern && managed == managed_.end());
    own.push_back(is_new.back() ? allocate(module, variable, device) : variable.is_extern ? 0 : managed->second);
  }
  // Known before others are asked for: two modules may each define what the other declares as extern.
  std::vector<std::uint64_t>& made = instances_[key] = std::move(own);
  try {
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].is_extern) made[i] = definition_of(module, all[i], device);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (is_new[i]) write_initial(module, all[i], made[i], made);
  } catch (...) {
    instances_.erase(key);
    throw;
  }
  return made;
}

}  // namespace gradring::simulated_gpu
