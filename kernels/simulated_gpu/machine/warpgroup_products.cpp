// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a product of wgmma: operands to matrices, and their product to the registers of a warp.
#include <array>
#include <span>
#include <vector>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/warpgroups.h"

namespace gradring::simulated_gpu {
namespace {

constexpr std::size_t kRegistersOfA = 4;

std::array<ConstRow, kRegistersOfA> fragment_of(const Operation& operation, Warp& warp, std::size_t accumulators) {
  std::array<ConstRow, kRegistersOfA> rows;
  for (std::size_t r = 0; r < rows.size(); ++r) rows[r] = warp.row<std::uint32_t>(operation.slots[accumulators + r]);
  return rows;
}

}  // namespace

void Warpgroups::read_left(const Product& product, Warp& warp, unsigned index, const AccessClocks::Knowledge& knowledge,
                           Stamp stamp, int k0) {
  const auto& details = *static_cast<const WarpgroupProduct*>(product.operation->details);
  if (details.reads_a_from_registers) {
    const auto rows = fragment_of(*product.operation, warp, details.accumulators());
    if (details.has_half_operands()) return read_fragment(details.type, rows, left_);
    return simulated_gpu::read_left(details.a, details.k(), rows, k0, 16, left_);
  }
  read_shared(product, warp, knowledge, stamp, details.major_a, product.a, static_cast<int>(16 * index), 16);
  if (details.has_half_operands()) return read_chunks(details.type, details.major_a, details.negates_a, chunks_, left_);
  read_elements(details.a, details.negates_a, chunks_, k0, left_);
}

void Warpgroups::multiply(const Product& product, Warp& warp, int inner, bool keeps) {
  const auto& details = *static_cast<const WarpgroupProduct*>(product.operation->details);
  std::array<Row, kMostColumns / 2> registers;
  for (std::size_t r = 0; r < details.accumulators(); ++r)
    registers[r] = warp.row<std::uint32_t>(product.operation->slots[r]);
  const auto sums = std::span(registers).first(details.accumulators());
  if (details.sum == SumType::f32) return multiply_add(left_, right_, inner, keeps, sums);
  std::vector<std::array<std::uint32_t, kLanes>> wide(static_cast<std::size_t>(details.columns) / 2);
  std::vector<Row> rows;
  for (auto& row : wide) rows.push_back(row.data());
  const std::vector<ConstRow> pairs(sums.begin(), sums.end());
  if (keeps) unpack_sums(pairs, rows);
  multiply_add(left_, right_, inner, keeps, rows);
  pack_sums(rows, sums);
}

void Warpgroups::multiply_integers(const Product& product, Warp& warp, unsigned index,
                                   const AccessClocks::Knowledge& knowledge, Stamp stamp) {
  const auto& details = *static_cast<const WarpgroupProduct*>(product.operation->details);
  std::vector<ConstRow> fragment;
  if (details.reads_a_from_registers) {
    const auto rows = fragment_of(*product.operation, warp, details.accumulators());
    fragment.assign(rows.begin(), rows.end());
  } else {
    read_shared(product, warp, knowledge, stamp, Major::k, product.a, static_cast<int>(16 * index), 16);
  }
  std::vector<Row> sums;
  for (std::size_t r = 0; r < details.accumulators(); ++r)
    sums.push_back(warp.row<std::uint32_t>(product.operation->slots[r]));
  wgmma_integers(details.a, details.b, fragment, chunks_, right_bytes_, product.keeps, details.saturates, sums);
}

}  // namespace gradring::simulated_gpu
