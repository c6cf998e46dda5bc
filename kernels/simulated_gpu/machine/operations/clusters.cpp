// SPDX-License-Identifier: Apache-2.0
// barrier.cluster, mapa, getctarank; accesses of the shared memory of other blocks of the cluster.
#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/cluster.h"
#include "kernels/simulated_gpu/machine/fault_report.h"
#include "kernels/simulated_gpu/machine/operations/access.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"
#include "kernels/simulated_gpu/memory/shared_memory.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

/// Of an address of shared::cluster, the part that is one of shared::cta.
constexpr std::uint64_t kOfBlock = (std::uint64_t{1} << kClusterRankShift) - 1;

void arrive_at_cluster(const Operation& operation, Warp& warp, Mask active) {
  at_lane(warp, operation, lowest_lane(active), [&] { warp.block().cluster().arrive(warp, active); });
}

void wait_for_cluster(const Operation& operation, Warp& warp, Mask active) {
  at_lane(warp, operation, lowest_lane(active), [&] {
    if (!warp.block().cluster().is_complete(warp, active)) warp.poll_again(active);
  });
}

/// T: an address of shared::cluster, or a generic one, whose window stays.
template <class T>
void map_address(const Operation& operation, Warp& warp, Mask active) {
  const T* const a = warp.row<T>(operation.a);
  const std::uint32_t* const rank = warp.row<std::uint32_t>(operation.b);
  T* const d = warp.row<T>(operation.d);
  for_each_lane(active, [&](unsigned lane) {
    if (rank[lane] >= warp.block().cluster_size())
      warp.fail(operation, lane,
                joined("rank ", rank[lane], " of a cluster of ", warp.block().cluster_size(), " blocks"));
    const std::uint64_t window = std::uint64_t{a[lane]} >> 32 << 32;
    // A block alone has no addresses but its own: resolve() does not look for others.
    d[lane] =
        warp.block().cluster_size() == 1 ? a[lane] : static_cast<T>(window + cluster_address(rank[lane], a[lane]));
  });
}

template <class T>
void rank_of_address(const Operation& operation, Warp& warp, Mask active) {
  const T* const a = warp.row<T>(operation.a);
  for_each_lane(active, [&](unsigned lane) {
    const auto rank = static_cast<std::uint32_t>(a[lane]) >> kClusterRankShift;
    warp.row<std::uint32_t>(operation.d)[lane] = rank == 0 ? warp.block().cluster_rank() : rank - 1;
  });
}

template <class Choose>
Handler of_address(Decoder& decoder, Type type, Choose choose) {
  return choose_type<std::uint32_t, std::uint64_t>(decoder, bits_of(type), choose);
}

/// mapa.shared::cluster.u32 d, a, rank
void translate_mapa(Decoder& decoder, Operation& operation) {
  decoder.take("shared::cluster");
  const Type type = decoder.take_type();
  decoder.read_rows(operation, type, {type, Type::u32});
  operation.execute = of_address(decoder, type, []<class T> { return &map_address<T>; });
}

void translate_getctarank(Decoder& decoder, Operation& operation) {
  decoder.take("shared::cluster");
  const Type type = decoder.take_type();
  decoder.read_rows(operation, Type::u32, {type});
  operation.execute = of_address(decoder, type, []<class T> { return &rank_of_address<T>; });
}

constexpr Opcode kOpcodes[] = {{"mapa", translate_mapa}, {"getctarank", translate_getctarank}};

}  // namespace

/// barrier.cluster.arrive.release.aligned, barrier.cluster.wait.acquire.aligned
void translate_cluster_barrier(Decoder& decoder, Operation& operation) {
  const std::size_t function = decoder.take_one_of({"arrive", "wait"});
  if (function > 1) decoder.reject("expected .arrive or .wait");
  decoder.take_one_of({"release", "relaxed", "acquire"});
  decoder.take("aligned");
  decoder.finish(0);
  operation.execute = function == 0 ? &arrive_at_cluster : &wait_for_cluster;
}

RemoteAddress remote_address(const Operation& operation, Warp& warp, unsigned lane, std::uint64_t address) {
  Block& own = warp.block();
  const auto rank = static_cast<unsigned>(address >> kClusterRankShift);
  Block* const block = rank == 0 ? &own : own.of_rank(rank - 1);
  if (block == nullptr || rank > own.cluster_size())
    warp.fail(
        operation, lane,
        joined("shared memory of rank ", rank - 1, " is accessed, in a cluster of ", own.cluster_size(), " blocks"),
        FindingKind::out_of_bounds);
  // A GPU may have given the shared memory to another block; here it stays as it was.
  if (block->has_ended())
    note_finding(warp, FindingKind::out_of_bounds, operation, lane, [&] {
      return joined("shared memory of block ", text_of(block->index()), " is accessed, which has ended");
    });
  return {block, address & kOfBlock};
}

void resolve_cluster(const Operation& operation, Warp& warp, Mask active, Access access, unsigned bytes,
                     Addresses& addresses) {
  bool are_own = true;
  for_each_lane(active, [&](unsigned lane) {
    are_own &= remote_address(operation, warp, lane, addresses.lane[lane]).block == &warp.block();
  });
  if (are_own) {
    for (std::uint64_t& address : addresses.lane) address &= kOfBlock;
    resolve(operation, warp, active, StateSpace::shared, access, bytes, addresses);
    return;
  }
  for_each_lane(active, [&](unsigned lane) {
    const auto [block, address] = remote_address(operation, warp, lane, addresses.lane[lane]);
    SharedMemory& shared = block->shared();
    const auto fail = [&](const std::string& what, FindingKind kind) {
      warp.fail(operation, lane,
                joined("shared memory of block ", text_of(block->index()), what, bytes, " bytes at ", address), kind);
    };
    if (!shared.holds(address, bytes)) fail(" is accessed out of bounds: ", FindingKind::out_of_bounds);
    if (address % bytes != 0) fail(" is accessed at a misaligned address: ", FindingKind::misaligned);
    if (block->mbarriers().overlaps(address, bytes))
      fail(", of which an mbarrier is accessed by an instruction that is not for mbarriers: ", FindingKind::fault);
    if (access != Access::write && !shared.is_written(address, bytes))
      note_finding(warp, FindingKind::not_written, operation, lane, [&, target = block, at = address] {
        return joined("shared memory of block ", text_of(target->index()), " is read before it is written: ", bytes,
                      " bytes at ", at);
      });
    if (access != Access::read) shared.note_remote_write(address, bytes);
    addresses.lane[lane] = reinterpret_cast<std::uint64_t>(shared.at(address));
  });
}

std::span<const Opcode> cluster_opcodes() { return kOpcodes; }

}  // namespace gradring::simulated_gpu
