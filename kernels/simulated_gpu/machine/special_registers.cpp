// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/special_registers.h"

#include <algorithm>
#include <string>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/decoder.h"
#include "kernels/simulated_gpu/machine/warp.h"
#include "kernels/simulated_gpu/memory/address_space.h"

namespace gradring::simulated_gpu {
namespace {

struct Named {
  std::string_view name;
  bool differs_by_block;
  SpecialRow::Value value;
};

constexpr Named kSpecialRegisters[] = {
    {"%tid.x", false,
     [](const Warp& warp, unsigned lane, std::uint64_t) { return std::uint64_t{warp.thread(lane).x}; }},
    {"%tid.y", false,
     [](const Warp& warp, unsigned lane, std::uint64_t) { return std::uint64_t{warp.thread(lane).y}; }},
    {"%tid.z", false,
     [](const Warp& warp, unsigned lane, std::uint64_t) { return std::uint64_t{warp.thread(lane).z}; }},
    {"%ntid.x", false,
     [](const Warp& warp, unsigned, std::uint64_t) { return std::uint64_t{warp.block().launch().block.x}; }},
    {"%ntid.y", false,
     [](const Warp& warp, unsigned, std::uint64_t) { return std::uint64_t{warp.block().launch().block.y}; }},
    {"%ntid.z", false,
     [](const Warp& warp, unsigned, std::uint64_t) { return std::uint64_t{warp.block().launch().block.z}; }},
    {"%ctaid.x", true, [](const Warp& warp, unsigned, std::uint64_t) { return std::uint64_t{warp.block().index().x}; }},
    {"%ctaid.y", true, [](const Warp& warp, unsigned, std::uint64_t) { return std::uint64_t{warp.block().index().y}; }},
    {"%ctaid.z", true, [](const Warp& warp, unsigned, std::uint64_t) { return std::uint64_t{warp.block().index().z}; }},
    {"%nctaid.x", false,
     [](const Warp& warp, unsigned, std::uint64_t) { return std::uint64_t{warp.block().launch().grid.x}; }},
    {"%nctaid.y", false,
     [](const Warp& warp, unsigned, std::uint64_t) { return std::uint64_t{warp.block().launch().grid.y}; }},
    {"%nctaid.z", false,
     [](const Warp& warp, unsigned, std::uint64_t) { return std::uint64_t{warp.block().launch().grid.z}; }},
    {"%laneid", false, [](const Warp&, unsigned lane, std::uint64_t) { return std::uint64_t{lane}; }},
    {"%warpid", false, [](const Warp& warp, unsigned, std::uint64_t) { return std::uint64_t{warp.index()}; }},
    {"%nwarpid", false,
     [](const Warp& warp, unsigned, std::uint64_t) { return std::uint64_t{warp.block().warp_count()}; }},
    {"%lanemask_eq", false, [](const Warp&, unsigned lane, std::uint64_t) { return std::uint64_t{1} << lane; }},
    {"%lanemask_lt", false, [](const Warp&, unsigned lane, std::uint64_t) { return (std::uint64_t{1} << lane) - 1; }},
    {"%lanemask_le", false, [](const Warp&, unsigned lane, std::uint64_t) { return (std::uint64_t{2} << lane) - 1; }},
    {"%lanemask_gt", false,
     [](const Warp&, unsigned lane, std::uint64_t) { return (0 - (std::uint64_t{2} << lane)) & kAllLanes; }},
    {"%lanemask_ge", false,
     [](const Warp&, unsigned lane, std::uint64_t) { return (0 - (std::uint64_t{1} << lane)) & kAllLanes; }},
    {"%dynamic_smem_size", false,
     [](const Warp& warp, unsigned, std::uint64_t) {
       return std::uint64_t{warp.block().launch().dynamic_shared_bytes};
     }},
    {"WARP_SZ", false, [](const Warp&, unsigned, std::uint64_t) { return std::uint64_t{kWarpSize}; }},
};

std::uint64_t same(const Warp&, unsigned, std::uint64_t argument) { return argument; }

std::uint64_t parameter_address(const Warp& warp, unsigned, std::uint64_t offset) {
  return reinterpret_cast<std::uint64_t>(warp.block().launch().parameters.data()) + offset;
}

const ptx::Variable* find(const std::vector<ptx::Variable>& variables, std::string_view name) {
  const auto found = std::ranges::find(variables, name, &ptx::Variable::name);
  return found == variables.end() ? nullptr : &*found;
}

}  // namespace

SpecialRow special_register(std::string_view name) {
  const auto* const known = std::ranges::find(kSpecialRegisters, name, &Named::name);
  if (known == std::end(kSpecialRegisters))
    throw Unsupported("special register " + std::string(name) + " is not known");
  return {.differs_by_block = known->differs_by_block, .value = known->value};
}

SpecialRow address_of_symbol(const ptx::Kernel& kernel, std::string_view name) {
  if (const ptx::Variable* parameter = find(kernel.parameters, name))
    return {.value = parameter_address, .argument = parameter->offset};
  if (const ptx::Variable* variable = find(kernel.shared, name))
    return {.value = same, .argument = kFirstSharedAddress + variable->offset};
  if (const ptx::Variable* variable = find(kernel.local, name))
    return {.value = same, .argument = kFirstLocalAddress + variable->offset};
  throw Unsupported("symbol " + std::string(name) + " is not a parameter, a shared or a local variable");
}

}  // namespace gradring::simulated_gpu
