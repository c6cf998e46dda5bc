// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/simulated_gpu/machine/decoder.h"
#include "kernels/simulated_gpu/machine/special_registers.h"

namespace gradring::simulated_gpu {
namespace {

constexpr unsigned kRowAlignment = 64;
constexpr unsigned kPredicateBytes = sizeof(Mask);

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
  row.width = width;
  return add_special(row);
}

Slot FrameLayout::of_symbol(std::string_view name, std::int64_t offset, unsigned width) {
  SpecialRow row = address_of_symbol(*program_.kernel, name);
  row.argument += static_cast<std::uint64_t>(offset);
  row.width = width;
  return add_special(row);
}

}  // namespace gradring::simulated_gpu
