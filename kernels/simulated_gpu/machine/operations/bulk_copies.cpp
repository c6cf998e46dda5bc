// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk, cp.async.bulk.tensor, cp.reduce.async.bulk, and their groups.
//
// Source    PTX ISA 9.0: 9.7.9.25.4 Non-tensor copy instructions, 9.7.9.27 Tensor copy instructions.

#include <algorithm>
#include <optional>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/fault_report.h"
#include "kernels/simulated_gpu/machine/operations/access.h"
#include "kernels/simulated_gpu/machine/operations/element_atomics.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"
#include "kernels/simulated_gpu/memory/shared_memory.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

struct BulkDetails {
  Decoder::Address shared;
  Decoder::Address global;  ///< of a tensor copy, that of the map
  std::optional<Decoder::Address> mbarrier;
  bool is_tensor = false;
  std::vector<Slot> coordinates;  ///< of a tensor copy
  Slot bytes = 0;                 ///< of another one
  std::optional<Slot> blocks;     ///< .multicast::cluster: a row of 16 bits
  ElementFunction function;       ///< of a reduction
};

constexpr std::uint64_t kBulkAlignment = 16;

TensorMap map_at(const Operation& operation, Warp& warp, unsigned lane, std::uint64_t address) {
  Addresses part;
  for (std::uint64_t offset = 0; offset < kTensorMapBytes; offset += kBulkAlignment) {
    std::ranges::fill(part.lane, address + offset);
    resolve(operation, warp, kLaneBits[lane], StateSpace::generic, Access::read, kBulkAlignment, part);
  }
  return at_lane(warp, operation, lane, [&] {
    return TensorMap::decode(reinterpret_cast<const void*>(part.lane[lane] - (kTensorMapBytes - kBulkAlignment)));
  });
}

/// What a lane asks for.
TensorCopies::Request request_of(const Operation& operation, Warp& warp, unsigned lane, std::uint64_t shared,
                                 std::uint64_t global) {
  const auto& details = *static_cast<const BulkDetails*>(operation.details);
  TensorCopies::Request request{.map = {}, .coordinates = {}, .shared_address = static_cast<std::uint32_t>(shared)};
  if (details.is_tensor) {
    request.map = map_at(operation, warp, lane, global);
    for (const Slot slot : details.coordinates) request.coordinates.push_back(warp.row<std::int32_t>(slot)[lane]);
    return request;
  }
  request.global_address = global;
  request.plain_bytes = warp.row<std::uint32_t>(details.bytes)[lane];
  const auto check = [&](const char* what, std::uint64_t value) {
    if (value % kBulkAlignment != 0)
      warp.fail(operation, lane, joined(what, " of a bulk copy is ", value, ", which is not a multiple of 16"),
                FindingKind::misaligned);
  };
  check("the address in shared memory", shared);
  check("the address in global memory", global);
  check("the size", request.plain_bytes);
  if (request.plain_bytes > warp.block().shared().bytes())
    warp.fail(operation, lane,
              joined("the size of a bulk copy is ", request.plain_bytes, "; the block has ",
                     warp.block().shared().bytes(), " bytes of shared memory"),
              FindingKind::out_of_bounds);
  return request;
}

/// To shared memory: of this block, of another one of the cluster, or of several.
void load_bulk(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const BulkDetails*>(operation.details);
  const Addresses to = addresses_of(details.shared, warp, active);
  const Addresses mbarriers = addresses_of(*details.mbarrier, warp, active);
  const Addresses from = addresses_of(details.global, warp, active);
  for_each_lane(active, [&](unsigned lane) {
    const RemoteAddress target = remote_address(operation, warp, lane, without_shared_window(to.lane[lane]));
    const RemoteAddress mbarrier = remote_address(operation, warp, lane, without_shared_window(mbarriers.lane[lane]));
    TensorCopies::Request request = request_of(operation, warp, lane, target.address, from.lane[lane]);
    request.mbarrier = static_cast<std::uint32_t>(mbarrier.address);
    const auto start_in = [&](Block& block) {
      at_lane(warp, operation, lane, [&] {
        if (!block.mbarriers().is_fenced(request.mbarrier))
          note_finding(warp, FindingKind::unfenced_mbarrier, operation, lane, [] {
            return "an mbarrier was initialised without fence.mbarrier_init or fence.proxy.async, and a copy uses it";
          });
      });
      block.tensor_copies().start(operation, warp, lane, request);
    };
    if (!details.blocks) return start_in(*target.block);
    const std::uint16_t blocks = warp.row<std::uint16_t>(*details.blocks)[lane];
    for (unsigned rank = 0; rank < 16; ++rank) {
      if ((blocks >> rank & 1) == 0) continue;
      Block* const block = warp.block().of_rank(rank);
      if (block == nullptr) warp.fail(operation, lane, joined("the cluster has no block ", rank, " for a multicast"));
      if (block->has_ended())
        warp.fail(operation, lane, joined("block ", rank, " of the cluster has ended before a multicast to it"));
      start_in(*block);
    }
  });
}

/// From shared to global memory, in a bulk group.
void store_bulk(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const BulkDetails*>(operation.details);
  const Addresses from = addresses_of(details.shared, warp, active);
  const Addresses to = addresses_of(details.global, warp, active);
  for_each_lane(active, [&](unsigned lane) {
    BulkStores::Request request;
    request.update = details.function.update;
    request.element_bytes = details.function.bytes;
    const TensorCopies::Request what =
        request_of(operation, warp, lane, without_shared_window(from.lane[lane]), to.lane[lane]);
    at_lane(warp, operation, lane, [&] { what.find_chunks(request.chunks); });
    warp.bulk_stores().start(operation, warp, lane, std::move(request));
  });
}

void commit_bulk(const Operation&, Warp& warp, Mask active) { warp.bulk_stores().commit(active); }

template <bool kReadsOnly>
void wait_for_bulk(const Operation& operation, Warp& warp, Mask active) {
  warp.bulk_stores().wait(warp, active, operation.immediate, kReadsOnly);
}

/// [map, {x, y}]
void decode_tensor(Decoder& decoder, BulkDetails& details, std::size_t operand, std::size_t rank) {
  const auto& parts = decoder.operand(operand).parts;
  if (parts.size() != rank + 1) decoder.reject(joined(parts.size() - 1, " coordinates; expected ", rank));
  for (std::size_t i = 1; i < parts.size(); ++i) details.coordinates.push_back(decoder.source(parts[i], Type::b32));
}

void translate_group(Decoder& decoder, Operation& operation, bool waits) {
  if (!waits) {
    decoder.finish(0);
    operation.execute = &commit_bulk;
    return;
  }
  operation.execute = decoder.take("read") ? &wait_for_bulk<true> : &wait_for_bulk<false>;
  decoder.finish(1);
  operation.immediate = decoder.constant(decoder.operand(0));
}

/// cp.async.bulk.prefetch.L2.global [a], size
void translate_prefetch(Decoder& decoder, Operation& operation) {
  decoder.take_one_of({"1d", "2d", "3d", "4d", "5d"});
  for (const std::string_view word : {"tensor", "L2", "global", "tile", "L2::cache_hint"}) decoder.take(word);
  if (!decoder.next().empty()) decoder.reject(joined("modifier .", decoder.next(), " is not supported here"));
  operation.execute = [](const Operation&, Warp&, Mask) {};
}

}  // namespace

void translate_bulk_copy(Decoder& decoder, Operation& operation, bool reduces) {
  if (decoder.take("prefetch")) return translate_prefetch(decoder, operation);
  if (decoder.take("commit_group")) return translate_group(decoder, operation, false);
  if (decoder.take("wait_group")) return translate_group(decoder, operation, true);
  BulkDetails details{.shared = {}, .global = {}, .mbarrier = {}, .is_tensor = decoder.take("tensor")};
  const std::size_t rank = details.is_tensor ? decoder.take_one_of({"1d", "2d", "3d", "4d", "5d"}) + 1 : 0;
  if (rank > 5) decoder.reject("a number of dimensions from 1d to 5d is expected");
  // The first space is that of the destination.
  const bool loads = decoder.next() != "global";
  const bool names_shared = decoder.take_one_of({"shared::cluster", "shared::cta"}) < 2;
  if (!names_shared || !decoder.take("global")) decoder.reject("a copy between shared and global memory is expected");
  decoder.take("tile");
  if (!decoder.take(loads ? "mbarrier::complete_tx::bytes" : "bulk_group"))
    decoder.reject(joined(loads ? ".mbarrier::complete_tx::bytes" : ".bulk_group", " is expected"));
  const bool has_blocks = decoder.take("multicast::cluster");
  const bool has_policy = decoder.take("L2::cache_hint");
  if (reduces) {
    // A reduction of a tensor has the type of its map's elements, which is not known here.
    if (details.is_tensor) decoder.reject("reductions of tensors are not supported");
    details.function = take_element_function(decoder);
  }
  const std::size_t operands = 2 + (loads ? 1 : 0) + (details.is_tensor ? 0 : 1);
  decoder.finish(operands + (has_blocks ? 1 : 0) + (has_policy ? 1 : 0));
  details.shared = decoder.address(decoder.operand(loads ? 0 : 1));
  details.global = decoder.address(decoder.operand(loads ? 1 : 0));
  if (details.is_tensor)
    decode_tensor(decoder, details, loads ? 1 : 0, rank);
  else
    details.bytes = decoder.source(2, Type::u32);
  if (loads) details.mbarrier = decoder.address(decoder.operand(operands - 1));
  if (has_blocks) details.blocks = decoder.source(operands, Type::b16);
  note_shared_access(decoder, StateSpace::shared, kBulkAlignment);
  operation.details = decoder.keep_details(std::move(details));
  operation.execute = loads ? &load_bulk : &store_bulk;
}

}  // namespace gradring::simulated_gpu
