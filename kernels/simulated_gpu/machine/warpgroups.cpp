// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/warpgroups.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/fault_report.h"

namespace gradring::simulated_gpu {

void Warpgroups::start(const Operation& operation, Warp& warp) {
  WarpState& state = warps_[warp.index()];
  if (!state.is_fenced)
    warp.fail(operation, 0,
              "wgmma without wgmma.fence after other instructions accessed its registers, or before the first one");
  if (warps_of(warp.index() / kWarps) != kWarps)
    warp.fail(operation, 0, "wgmma by a warpgroup of less than four warps");
  const std::uint64_t* const a = warp.row<std::uint64_t>(operation.a);
  const std::uint64_t* const b = warp.row<std::uint64_t>(operation.b);
  for (unsigned lane = 1; lane < kWarpSize; ++lane)
    if (a[lane] != a[0] || b[lane] != b[0]) warp.fail(operation, lane, "a matrix descriptor differs within a warp");
  const Mask keeps = warp.predicate(operation.c);
  if (keeps != 0 && keeps != kAllLanes) warp.fail(operation, 0, "scale-d differs within a warp");
  state.open.push_back({&operation, a[0], b[0], keeps != 0, block_.shared().clocks().with_own(warp.index())});
}

void Warpgroups::commit(unsigned warp) {
  is_used_ = true;
  WarpState& state = warps_[warp];
  state.groups.push_back(std::move(state.open));
  state.open.clear();
  ++state.committed;
  block_.note_progress();
}

bool Warpgroups::wait(Warp& warp, std::uint64_t pending) {
  const unsigned warpgroup = warp.index() / kWarps;
  GroupState& group = groups_[warpgroup];
  const std::uint64_t committed = warps_[warp.index()].committed;
  const std::uint64_t awaited = committed > pending ? committed - pending : 0;
  for (; group.landed < awaited; ++group.landed) {
    for (unsigned i = 0; i < warps_of(warpgroup); ++i)
      if (warps_[warpgroup * kWarps + i].committed <= group.landed) return false;
    land(warpgroup);
  }
  block_.shared().clocks().acquire(warp.index(), warp.living(), true, group.done);
  return true;
}

void Warpgroups::land(unsigned warpgroup) {
  const unsigned first = warpgroup * kWarps;
  const Stamp stamp = block_.shared().clocks().act(AccessClocks::kTensorCores + warpgroup, groups_[warpgroup].done);
  std::array<Group, kWarps> groups;
  std::size_t most = 0;
  for (unsigned i = 0; i < kWarps && first + i < warps_.size(); ++i) {
    groups[i] = std::move(warps_[first + i].groups.front());
    warps_[first + i].groups.pop_front();
    most = std::max(most, groups[i].size());
  }
  for (std::size_t k = 0; k < most; ++k) {
    std::array<const Product*, kWarps> products{};
    for (unsigned i = 0; i < kWarps; ++i) products[i] = k < groups[i].size() ? &groups[i][k] : nullptr;
    land_product(first, kWarps, products, stamp);
  }
}

void Warpgroups::read_shared(const Product& product, Warp& warp, const AccessClocks::Knowledge& knowledge, Stamp stamp,
                             Major major, std::uint64_t descriptor, int first, int extent) {
  const Operation& operation = *product.operation;
  addresses_.resize(chunks_of(extent));
  chunks_.resize(addresses_.size());
  at_lane(warp, operation, 0,
          [&] { chunk_addresses(MatrixDescriptor::decode(descriptor), major, first, extent, addresses_); });
  SharedMemory& shared = block_.shared();
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    const std::uint32_t address = addresses_[i];
    if (!shared.holds(address, kChunkBytes))
      warp.fail(operation, 0, joined("shared memory is read out of bounds by wgmma: 16 bytes at ", address));
    const SharedFinding finding = shared.note_late_read(address, kChunkBytes, stamp, knowledge);
    if (finding.problem != SharedFinding::Problem::none) [[unlikely]]
      note_shared_finding(warp, operation, 0, finding, joined("16 bytes at ", address), "read",
                          kind_of(finding.problem));
    std::memcpy(chunks_[i].data(), shared.at(address), kChunkBytes);
  }
}

void Warpgroups::land_product(unsigned first_warp, unsigned warps, std::array<const Product*, kWarps> products,
                              Stamp stamp) {
  AccessClocks::Knowledge knowledge = products[0] == nullptr ? AccessClocks::Knowledge{} : products[0]->knowledge;
  for (unsigned i = 0; i < warps; ++i) {
    Warp& warp = block_.warp(first_warp + i);
    if (products[0] == nullptr || products[i] == nullptr || products[i]->operation != products[0]->operation ||
        products[i]->b != products[0]->b) {
      const Product& any = *(products[i] != nullptr ? products[i] : products[0] != nullptr ? products[0] : products[1]);
      warp.fail(*any.operation, 0, "the warps of a warpgroup execute different wgmma, or with different descriptors");
    }
    AccessClocks::restrict(knowledge, products[i]->knowledge);
  }
  const auto& details = *static_cast<const WarpgroupProduct*>(products[0]->operation->details);
  read_shared(*products[0], block_.warp(first_warp), knowledge, stamp, details.major_b, products[0]->b, 0,
              details.columns);
  std::swap(right_bytes_, chunks_);
  if (details.sum == SumType::s32) {
    for (unsigned i = 0; i < warps; ++i)
      multiply_integers(*products[i], block_.warp(first_warp + i), i, knowledge, stamp);
    return;
  }
  for (int k0 = 0; k0 < details.k(); k0 += 16) {
    if (details.has_half_operands())
      read_chunks(details.type, details.major_b, details.negates_b, details.columns, right_bytes_, right_);
    else
      read_elements(details.b, details.negates_b, right_bytes_, k0, right_);
    for (unsigned i = 0; i < warps; ++i) {
      Warp& warp = block_.warp(first_warp + i);
      read_left(*products[i], warp, i, knowledge, stamp, k0);
      multiply(*products[i], warp, std::min(16, details.k() - k0), k0 > 0 || products[i]->keeps);
    }
  }
}

void Warpgroups::touch(const Operation& operation, Warp& warp, Mask active) {
  WarpState& state = warps_[warp.index()];
  state.is_fenced = false;
  const auto is_touched = [&](Slot slot) {
    return slot == operation.d || slot == operation.a || slot == operation.b || slot == operation.c ||
           std::find(operation.slots, operation.slots + operation.slot_count, slot) !=
               operation.slots + operation.slot_count;
  };
  const auto check = [&](const Group& group) {
    for (const Product& product : group)
      if (std::any_of(product.operation->slots, product.operation->slots + product.operation->slot_count, is_touched))
        note_finding(warp, FindingKind::undefined_value, operation, lowest_lane(active), [&] {
          return "a register of wgmma is accessed before wgmma.wait_group: " +
                 describe_instruction(block_.program(), block_.program().position_of(*product.operation));
        });
  };
  check(state.open);
  for (const Group& group : state.groups) check(group);
}

void Warpgroups::end_block() {
  for (unsigned i = 0; i < warps_.size(); ++i) {
    const Group* const group = !warps_[i].open.empty()     ? &warps_[i].open
                               : !warps_[i].groups.empty() ? &warps_[i].groups.front()
                                                           : nullptr;
    if (group != nullptr && !group->empty())
      note_finding(block_.warp(i), FindingKind::unfinished_copy, *group->front().operation, 0,
                   [] { return "the block ends while wgmma is under way: nobody waits for it"; });
  }
}

}  // namespace gradring::simulated_gpu
