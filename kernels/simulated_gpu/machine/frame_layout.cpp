// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/cluster.h"
#include "kernels/simulated_gpu/machine/decoder.h"
#include "kernels/simulated_gpu/machine/warp.h"
#include "kernels/simulated_gpu/memory/shared_memory.h"
#include "kernels/simulated_gpu/units/fault.h"

namespace gradring::simulated_gpu {
namespace {

constexpr unsigned kRowAlignment = 64;
constexpr unsigned kPredicateBytes = sizeof(Mask);

struct Named {
  std::string_view name;  ///< without its axis
  bool differs_by_block;
  SpecialRow::Value value;  ///< of an axis, if the name has one
};

std::uint64_t along(const Extent& extent, std::uint64_t axis) {
  return axis == 0 ? extent.x : axis == 1 ? extent.y : extent.z;
}

constexpr Named kOfAxis[] = {
    {"%tid", false, [](const Warp& warp, unsigned lane, std::uint64_t axis) { return along(warp.thread(lane), axis); }},
    {"%ntid", false,
     [](const Warp& warp, unsigned, std::uint64_t axis) { return along(warp.block().launch().block, axis); }},
    {"%ctaid", true, [](const Warp& warp, unsigned, std::uint64_t axis) { return along(warp.block().index(), axis); }},
    {"%nctaid", false,
     [](const Warp& warp, unsigned, std::uint64_t axis) { return along(warp.block().launch().grid, axis); }},
    {"%clusterid", true,
     [](const Warp& warp, unsigned, std::uint64_t axis) { return along(warp.block().cluster().index(), axis); }},
    {"%nclusterid", false,
     [](const Warp& warp, unsigned, std::uint64_t axis) { return along(clusters_of(warp.block().launch()), axis); }},
    {"%cluster_ctaid", false,
     [](const Warp& warp, unsigned, std::uint64_t axis) {
       return along(extent_at(warp.block().launch().cluster, warp.block().cluster_rank()), axis);
     }},
    {"%cluster_nctaid", false,
     [](const Warp& warp, unsigned, std::uint64_t axis) { return along(warp.block().launch().cluster, axis); }},
};

/// Cooperative groups keep what their collectives exchange behind the shared memory of the kernel.
std::uint64_t reserved_shared(const Warp& warp, unsigned, std::uint64_t) {
  return kFirstSharedAddress + warp.block().shared().bytes() - Program::kReservedSharedBytes;
}

constexpr Named kOthers[] = {
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
    {"%total_smem_size", false,
     [](const Warp& warp, unsigned, std::uint64_t) {
       return std::uint64_t{warp.block().launch().dynamic_shared_bytes +
                            warp.block().program().kernel->static_shared_bytes};
     }},
    {"%gridid", false, [](const Warp&, unsigned, std::uint64_t) { return std::uint64_t{1}; }},
    {"%smid", true,
     [](const Warp& warp, unsigned, std::uint64_t) { return std::uint64_t{warp.block().multiprocessor()}; }},
    {"%nsmid", false,
     [](const Warp& warp, unsigned, std::uint64_t) { return std::uint64_t{warp.block().multiprocessors()}; }},
    {"%reserved_smem_offset_0", false, [](const Warp&, unsigned, std::uint64_t) { return std::uint64_t{0}; }},
    {"%reserved_smem_offset_begin", true, reserved_shared},
    {"%reserved_smem_offset_1", true, reserved_shared},
    {"%reserved_smem_offset_end", true,
     [](const Warp& warp, unsigned, std::uint64_t) {
       return reserved_shared(warp, 0, 0) + Program::kReservedSharedBytes;
     }},
    {"%cluster_ctarank", false,
     [](const Warp& warp, unsigned, std::uint64_t) { return std::uint64_t{warp.block().cluster_rank()}; }},
    {"%cluster_nctarank", false,
     [](const Warp& warp, unsigned, std::uint64_t) { return warp.block().launch().cluster.count(); }},
    {"%is_explicit_cluster", false,
     [](const Warp& warp, unsigned, std::uint64_t) {
       const LaunchSpec& launch = warp.block().launch();
       return std::uint64_t{warp.block().program().kernel->has_explicit_cluster || launch.cluster.count() > 1};
     }},
    // The driver's: of a cooperative launch, the address of the workspace of grid.sync, its upper half first.
    {"%envreg0", false, [](const Warp&, unsigned, std::uint64_t) { return std::uint64_t{0}; }},
    {"%envreg1", false,
     [](const Warp& warp, unsigned, std::uint64_t) { return warp.block().launch().grid_workspace >> 32; }},
    {"%envreg2", false,
     [](const Warp& warp, unsigned, std::uint64_t) { return warp.block().launch().grid_workspace & 0xffffffff; }},
    {"WARP_SZ", false, [](const Warp&, unsigned, std::uint64_t) { return std::uint64_t{kWarpSize}; }},
};

/// Null for an unknown name.
const Named* find(std::span<const Named> registers, std::string_view name) {
  const auto found = std::ranges::find(registers, name, &Named::name);
  return found == registers.end() ? nullptr : &*found;
}

/// %tid.x, %laneid, WARP_SZ, ...: how its value is found.
SpecialRow special_register(std::string_view name) {
  if (const Named* const known = find(kOthers, name))
    return {.differs_by_block = known->differs_by_block, .value = known->value};
  const std::size_t dot = std::min(name.find('.'), name.size());
  const std::size_t axis = std::string_view(".x.y.z").find(name.substr(dot)) / 2;
  const Named* const known = name.size() == dot + 2 && axis < 3 ? find(kOfAxis, name.substr(0, dot)) : nullptr;
  if (known == nullptr) throw Unsupported(joined("special register ", name, " is not known"));
  return {.differs_by_block = known->differs_by_block, .value = known->value, .argument = axis};
}

std::uint64_t same(const Warp&, unsigned, std::uint64_t argument) { return argument; }

std::uint64_t call_parameter_address(const Warp& warp, unsigned lane, std::uint64_t offset) {
  return warp.calls().parameter_address(lane, offset);
}

std::uint64_t parameter_address(const Warp& warp, unsigned, std::uint64_t offset) {
  return reinterpret_cast<std::uint64_t>(warp.block().launch().parameters.data()) + offset;
}

/// A SpecialRow's argument for a variable of the module: its index, and an offset below that may be negative.
constexpr unsigned kOffsetBits = 40;

std::uint64_t module_variable_address(const Warp& warp, unsigned, std::uint64_t argument) {
  const std::span<const std::uint64_t> addresses = warp.block().launch().variables;
  const std::uint64_t index = (argument + (std::uint64_t{1} << (kOffsetBits - 1))) >> kOffsetBits;
  if (index >= addresses.size()) throw Fault("the launch has no address for a variable of the module");
  return addresses[index] + (argument - (index << kOffsetBits));
}

const ptx::Variable* find(const std::vector<ptx::Variable>& variables, std::string_view name) {
  const auto found = std::ranges::find(variables, name, &ptx::Variable::name);
  return found == variables.end() ? nullptr : &*found;
}

/// The address of a parameter or variable in its own state space. A parameter's is that of the host, as is its generic
/// address.
SpecialRow address_of_symbol(const ptx::Module& module, const ptx::Kernel& kernel, std::string_view name) {
  if (const ptx::Variable* parameter = find(kernel.parameters, name))
    return {.value = parameter_address, .argument = parameter->offset};
  if (const ptx::Variable* variable = find(kernel.shared, name))
    return {.value = same, .argument = kFirstSharedAddress + variable->offset};
  if (const ptx::Variable* variable = find(kernel.local, name))
    return {.value = same, .argument = kFirstLocalAddress + variable->offset};
  if (const auto index = module.variable_named(name))
    return {.value = module_variable_address, .argument = std::uint64_t{*index} << kOffsetBits};
  throw Unsupported(joined("symbol ", name, " is not a parameter or a variable"));
}

}  // namespace

FrameLayout::FrameLayout(Program& program) : program_(program) {
  const std::vector<ptx::Type>& types = program.kernel->registers;
  registers_.resize(types.size());
  true_ = new_row(0);
  program_.constants.push_back({true_, 0, kAllLanes});
  for (std::size_t reg = 0; reg < types.size(); ++reg)
    if (types[reg] == ptx::Type::pred) registers_[reg] = new_row(0);
  for (std::size_t reg = 0; reg < types.size(); ++reg)
    if (types[reg] != ptx::Type::pred) registers_[reg] = new_row(static_cast<unsigned>(ptx::bytes_of(types[reg])));
  sink_ = new_row(8);
  for (const ptx::Function& function : program.kernel->functions) {
    FunctionRows& rows = program.functions.emplace_back();
    for (std::size_t reg = function.first_register; reg < function.end_register; ++reg)
      rows.registers.push_back({registers_[reg], static_cast<unsigned>(ptx::bytes_of(types[reg]))});
  }
  lay_out_stack();
}

/// Without recursion, a thread is in each function at most once.
void FrameLayout::lay_out_stack() {
  constexpr std::size_t kAlignment = 16;
  constexpr std::size_t kBytesForRecursion = 64 << 10;
  program_.stack_begin = (program_.kernel->local_bytes + kAlignment - 1) / kAlignment * kAlignment;
  for (const ptx::Function& function : program_.kernel->functions) {
    program_.stack_bytes += function.local_bytes;
    if (function.is_recursive && function.local_bytes > 0) program_.stack_bytes += kBytesForRecursion;
  }
  program_.local_bytes =
      program_.stack_bytes == 0 ? program_.kernel->local_bytes : program_.stack_begin + program_.stack_bytes;
}

Slot FrameLayout::new_row(unsigned width) {
  const Slot alignment = width == 0 ? kPredicateBytes : kRowAlignment;
  const Slot slot = (end_ + alignment - 1) / alignment * alignment;
  end_ = slot + (width == 0 ? kPredicateBytes : std::max(width, 2u) * kWarpSize);
  program_.frame_bytes = end_;
  return slot;
}

Slot FrameLayout::of_constant(std::uint64_t bits, unsigned width) {
  if (width == 0) bits = bits != 0 ? kAllLanes : 0;
  if (width != 0 && width < 8) bits &= (std::uint64_t{1} << (8 * width)) - 1;
  const auto [row, is_new] = constants_.try_emplace({bits, width}, 0);
  if (is_new) {
    row->second = new_row(width);
    program_.constants.push_back({row->second, width, bits});
  }
  return row->second;
}

Slot FrameLayout::add_special(const SpecialRow& row) {
  const auto [known, is_new] = specials_.try_emplace({row.value, row.argument, row.width}, 0);
  if (is_new) {
    known->second = new_row(row.width);
    program_.specials.push_back(row);
    program_.specials.back().slot = known->second;
  }
  return known->second;
}

Slot FrameLayout::of_special(std::string_view name, unsigned width) {
  SpecialRow row = special_register(name);
  program_.uses_reserved_shared |= name.starts_with("%reserved_smem");
  row.width = width;
  return add_special(row);
}

Slot FrameLayout::of_local(std::uint64_t offset, unsigned width) {
  if (width != 8) throw Unsupported("addresses have 64 bits");
  FunctionRows& rows = program_.functions[static_cast<std::size_t>(function_ - program_.kernel->functions.data())];
  const auto known = std::ranges::find(rows.local, offset, &FunctionRows::LocalAddress::offset);
  if (known != rows.local.end()) return known->row.slot;
  return rows.local.emplace_back(FunctionRows::Row{new_row(width), width}, offset).row.slot;
}

Slot FrameLayout::of_call_parameter(std::size_t index, std::int64_t offset, unsigned width) {
  return add_special({.width = width,
                      .value = call_parameter_address,
                      .argument = program_.kernel->call_parameters[index].offset + static_cast<std::uint64_t>(offset)});
}

Slot FrameLayout::of_symbol(std::string_view name, std::int64_t offset, unsigned width) {
  if (function_ != nullptr)
    if (const ptx::Variable* variable = find(function_->local, name))
      return of_local(variable->offset + static_cast<std::uint64_t>(offset), width);
  SpecialRow row = address_of_symbol(*program_.module, *program_.kernel, name);
  row.argument += static_cast<std::uint64_t>(offset);
  row.width = width;
  return add_special(row);
}

}  // namespace gradring::simulated_gpu
