// SPDX-License-Identifier: Apache-2.0
// cp.async, mbarrier, fence.
#include <array>
#include <atomic>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/fault_report.h"
#include "kernels/simulated_gpu/machine/operations/access.h"
#include "kernels/simulated_gpu/machine/operations/access_checks.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"
#include "kernels/simulated_gpu/memory/shared_memory.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

struct ThreadCopyDetails {
  Decoder::Address to, from;
  unsigned bytes = 16;
  Slot filled = 0;  ///< the row of the bytes that are read; the others are 0
};

void copy_by_threads(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const ThreadCopyDetails*>(operation.details);
  const Addresses to = addresses_of(details.to, warp, active);
  check_shared(operation, warp, active, Access::write, details.bytes, to);
  Addresses from = addresses_of(details.from, warp, active);
  const std::uint32_t* const filled = warp.row<std::uint32_t>(details.filled);
  const Mask whole = active & lanes_where([&](std::uint32_t bytes) { return bytes == details.bytes; }, filled);
  const Mask reading = active & lanes_where([](std::uint32_t bytes) { return bytes != 0; }, filled);
  Counters::Instruction& counters = warp.block().counters().instructions[warp.block().program().position_of(operation)];
  const std::uint64_t sectors_before = counters.sectors;
  if (whole == active) {
    resolve(operation, warp, active, StateSpace::global, Access::read, details.bytes, from);
  } else {
    check_alignment(operation, warp, active, details.bytes, from, span_of(from, details.bytes), "global");
    count_global_reads(operation, warp, reading, details.bytes, from);
    for_each_lane(active, [&](unsigned lane) {
      if (filled[lane] > details.bytes) warp.fail(operation, lane, "cp.async reads more bytes than it writes");
      if (filled[lane] != 0) check_global_read(operation, warp, lane, filled[lane], from.lane[lane]);
    });
  }
  if (details.bytes == 16) correct_for_copy(counters, active, reading, to, counters.sectors - sectors_before);
  std::array<ThreadCopies::Copy, kWarpSize> copies;
  std::size_t count = 0;
  for_each_lane(active, [&](unsigned lane) {
    copies[count++] = {from.lane[lane], static_cast<std::uint32_t>(to.lane[lane]), static_cast<std::uint8_t>(lane),
                       static_cast<std::uint8_t>(details.bytes), static_cast<std::uint8_t>(filled[lane])};
  });
  warp.copies().start(operation, warp, std::span(copies).first(count));
}

void commit_copies(const Operation&, Warp& warp, Mask active) { warp.copies().commit(active); }

void wait_for_copies(const Operation& operation, Warp& warp, Mask active) {
  warp.copies().wait(warp, active, operation.immediate, false);
}

void wait_for_all_copies(const Operation&, Warp& warp, Mask active) { warp.copies().wait(warp, active, 0, true); }

void translate_thread_copy(Decoder& decoder, Operation& operation) {
  const bool is_cg = decoder.take("cg");
  if (!is_cg && !decoder.take("ca")) decoder.reject(".ca or .cg is expected");
  if ((!decoder.take("shared") && !decoder.take("shared::cta")) || !decoder.take("global"))
    decoder.reject(".shared.global is expected");
  const std::size_t policies = decoder.take("L2::cache_hint") ? 1 : 0;
  decoder.take_one_of({"L2::64B", "L2::128B", "L2::256B"});
  const bool has_source_size = decoder.operand_count() == 4 + policies;
  decoder.finish((has_source_size ? 4 : 3) + policies);
  ThreadCopyDetails details;
  details.to = decoder.address(decoder.operand(0));
  details.from = decoder.address(decoder.operand(1));
  details.bytes = static_cast<unsigned>(decoder.constant(decoder.operand(2)));
  if (details.bytes != 16 && (is_cg || (details.bytes != 4 && details.bytes != 8)))
    decoder.reject("16 bytes are expected, or 4 or 8 with .ca");
  details.filled = has_source_size ? decoder.source(3, Type::u32) : decoder.frame().of_constant(details.bytes, 4);
  note_shared_access(decoder, StateSpace::shared, details.bytes);
  operation.details = decoder.keep_details(details);
  operation.execute = &copy_by_threads;
}

/// cp.async.mbarrier.arrive: when the copies that the thread has started land, which is as late as the mbarrier's phase
/// can complete. Without .noinc, the arrival is one more than the phase expects.
void arrive_after_copies(const Operation& operation, Warp& warp, Mask active) {
  const Addresses addresses = addresses_of(*static_cast<const Decoder::Address*>(operation.details), warp, active);
  for_each_lane(active, [&](unsigned lane) {
    const auto address = static_cast<std::uint32_t>(without_shared_window(addresses.lane[lane]));
    at_lane(warp, operation, lane,
            [&] { warp.block().mbarriers().arrive_later(address, warp.thread_index(lane), operation.immediate == 0); });
    warp.copies().arrive_when_landed(lane, address);
  });
}

void translate_copy_arrival(Decoder& decoder, Operation& operation) {
  if (!decoder.take("arrive")) decoder.reject(".arrive is expected");
  operation.immediate = decoder.take("noinc");
  decoder.take_one_of({"shared", "shared::cta"});
  if (decoder.take_type() != Type::b64) decoder.reject("type b64 is expected");
  decoder.finish(1);
  operation.details = decoder.keep_details(decoder.address(decoder.operand(0)));
  operation.execute = &arrive_after_copies;
}

void translate_cp(Decoder& decoder, Operation& operation) {
  const bool reduces = decoder.take("reduce");
  if (!decoder.take("async")) decoder.reject(".async is expected");
  if (decoder.take("bulk")) return translate_bulk_copy(decoder, operation, reduces);
  if (decoder.take("mbarrier")) return translate_copy_arrival(decoder, operation);
  if (decoder.take("commit_group")) {
    decoder.finish(0);
    operation.execute = &commit_copies;
  } else if (decoder.take("wait_group")) {
    decoder.finish(1);
    operation.immediate = decoder.constant(decoder.operand(0));
    operation.execute = &wait_for_copies;
  } else if (decoder.take("wait_all")) {
    decoder.finish(0);
    operation.execute = &wait_for_all_copies;
  } else {
    translate_thread_copy(decoder, operation);
  }
}

struct MbarrierDetails {
  Decoder::Address address;
  Slot state = 0;  ///< of arrive, test_wait: a row of 64 bits
  Slot count = 0;  ///< arrivals
  Slot bytes = 0;  ///< of expect_tx
  bool has_parity = false;
  bool drops = false;  ///< arrive_drop
};

/// Calls f(address, lane, thread) for each lane; addresses are those of shared memory, or generic ones.
template <class F>
void each_mbarrier(const Operation& operation, Warp& warp, Mask active, const MbarrierDetails& details, F f) {
  const Addresses addresses = addresses_of(details.address, warp, active);
  for_each_lane(active, [&](unsigned lane) {
    const std::uint64_t address = without_shared_window(addresses.lane[lane]);
    at_lane(warp, operation, lane, [&] {
      if (!warp.block().shared().holds(address, Mbarriers::kBytes))
        throw Fault(joined("an mbarrier is out of bounds of shared memory: 8 bytes at ", address));
      f(static_cast<std::uint32_t>(address), lane, warp.thread_index(lane));
    });
  });
}

void init_mbarrier(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const MbarrierDetails*>(operation.details);
  const std::uint32_t* const count = warp.row<std::uint32_t>(details.count);
  each_mbarrier(operation, warp, active, details, [&](std::uint32_t address, unsigned lane, unsigned thread) {
    warp.block().mbarriers().init(address, count[lane], thread);
  });
}

void invalidate_mbarrier(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const MbarrierDetails*>(operation.details);
  each_mbarrier(operation, warp, active, details,
                [&](std::uint32_t address, unsigned, unsigned) { warp.block().mbarriers().invalidate(address); });
}

/// At mbarriers of blocks of the cluster, which may be the own one.
void arrive_in_cluster(const Operation& operation, Warp& warp, Mask active, const Addresses& addresses) {
  const auto& details = *static_cast<const MbarrierDetails*>(operation.details);
  for_each_lane(active, [&](unsigned lane) {
    const auto [block, address] = remote_address(operation, warp, lane, without_shared_window(addresses.lane[lane]));
    at_lane(warp, operation, lane, [&, target = block, at = static_cast<std::uint32_t>(address)] {
      const std::uint32_t count = warp.row<std::uint32_t>(details.count)[lane];
      const std::uint32_t bytes = warp.row<std::uint32_t>(details.bytes)[lane];
      if (target != &warp.block()) {
        if (details.drops) throw Fault("arrive_drop at an mbarrier of another block is not supported");
        return target->mbarriers().arrive_from_elsewhere(at, count, bytes);
      }
      if (bytes != 0) target->mbarriers().expect(at, bytes, warp.thread_index(lane));
      target->mbarriers().arrive(at, count, warp.thread_index(lane), false, details.drops);
    });
  });
}

void arrive_at_mbarrier(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const MbarrierDetails*>(operation.details);
  const std::uint32_t* const count = warp.row<std::uint32_t>(details.count);
  const std::uint32_t* const bytes = warp.row<std::uint32_t>(details.bytes);
  const Addresses addresses = addresses_of(details.address, warp, active);
  const bool has_remote = std::ranges::any_of(
      addresses.lane, [](std::uint64_t address) { return without_shared_window(address) >> kClusterRankShift != 0; });
  if (has_remote) return arrive_in_cluster(operation, warp, active, addresses);
  const bool is_one = std::ranges::all_of(addresses.lane, [&](std::uint64_t at) { return at == addresses.lane[0]; });
  const bool whole = is_one && active == warp.living();
  each_mbarrier(operation, warp, active, details, [&](std::uint32_t address, unsigned lane, unsigned thread) {
    SynchronizedMbarriers& mbarriers = warp.block().mbarriers();
    if (bytes[lane] != 0) mbarriers.expect(address, bytes[lane], thread);
    warp.row<std::uint64_t>(details.state)[lane] = mbarriers.arrive(address, count[lane], thread, whole, details.drops);
  });
}

void land_copies(Block& block, std::uint32_t mbarrier) {
  block.tensor_copies().land_at(mbarrier);
  for (unsigned i = 0; i < block.warp_count(); ++i) block.warp(i).copies().land_at(block.warp(i), mbarrier);
}

/// mbarrier.expect_tx, mbarrier.complete_tx
template <bool kExpects>
void change_transactions(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const MbarrierDetails*>(operation.details);
  const std::uint32_t* const bytes = warp.row<std::uint32_t>(details.bytes);
  each_mbarrier(operation, warp, active, details, [&](std::uint32_t address, unsigned lane, unsigned thread) {
    if constexpr (kExpects)
      warp.block().mbarriers().expect(address, bytes[lane], thread);
    else
      warp.block().mbarriers().complete(address, bytes[lane], thread);
  });
}

void count_pending(const Operation& operation, Warp& warp, Mask active) {
  const std::uint64_t* const state = warp.row<std::uint64_t>(operation.a);
  for_each_lane(active,
                [&](unsigned lane) { warp.row<std::uint32_t>(operation.d)[lane] = Mbarrier::pending_of(state[lane]); });
}

void wait_at_mbarrier(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const MbarrierDetails*>(operation.details);
  Mask complete = 0;
  Mask acquired = 0;
  std::uint32_t last = 0;
  SynchronizedMbarriers& mbarriers = warp.block().mbarriers();
  const auto acquire = [&] {
    if (acquired != 0) mbarriers.acquire(last, warp.index(), acquired, acquired == warp.living());
    acquired = 0;
  };
  each_mbarrier(operation, warp, active, details, [&](std::uint32_t address, unsigned lane, unsigned thread) {
    if (address != last) {
      acquire();  // lanes that wait for one mbarrier learn together
      land_copies(warp.block(), address);
      last = address;
    }
    const bool is_complete =
        details.has_parity
            ? mbarriers.is_complete(address, (warp.row<std::uint32_t>(details.state)[lane] & 1) != 0, thread)
            : mbarriers.is_complete_since(address, warp.row<std::uint64_t>(details.state)[lane], thread);
    if (!is_complete) return;
    complete |= kLaneBits[lane];
    acquired |= kLaneBits[lane];
  });
  acquire();
  warp.set_predicate(operation.d, active, complete);
  if (complete != active) warp.poll();
}

void fence_proxy(const Operation&, Warp& warp, Mask active) {
  warp.block().shared().clocks().fence_proxy(warp.index(), active);
  for_each_lane(active, [&](unsigned lane) { warp.block().mbarriers().fence(warp.thread_index(lane)); });
}

void fence_mbarrier_init(const Operation&, Warp& warp, Mask active) {
  for_each_lane(active, [&](unsigned lane) { warp.block().mbarriers().fence(warp.thread_index(lane)); });
}

/// Every generic access of the simulated GPU is visible to all as soon as it is made.
void fence(const Operation&, Warp& warp, Mask active) {
  warp.block().shared().order().fence(warp.index(), active, active == warp.living());
  if (GlobalWords* const words = warp.block().global_words()) words->stop();
}

/// The same with the scope of a GPU or more, which orders blocks.
void fence_blocks(const Operation& operation, Warp& warp, Mask active) {
  fence(operation, warp, active);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // other host threads execute blocks, too
  if (GlobalAccesses* const accesses = warp.block().accesses()) accesses->note_fence(warp.index());
}

void translate_arrive(Decoder& decoder, Operation& operation, MbarrierDetails details) {
  const bool expects = decoder.take("expect_tx");
  decoder.take("noComplete");
  decoder.take_one_of({"release", "relaxed"});
  decoder.take_one_of({"cta", "cluster"});
  const bool has_number = decoder.operand_count() == 3;
  decoder.finish(has_number || expects ? 3 : 2);
  details.state = decoder.destination(0, Type::b64);
  details.address = decoder.address(decoder.operand(1));
  if (has_number) (expects ? details.bytes : details.count) = decoder.source(2, Type::u32);
  operation.details = decoder.keep_details(details);
  operation.execute = &arrive_at_mbarrier;
}

void translate_wait(Decoder& decoder, Operation& operation, MbarrierDetails details) {
  details.has_parity = decoder.take("parity");
  decoder.take_one_of({"acquire", "relaxed"});
  decoder.take_one_of({"cta", "cluster"});
  const bool has_time = decoder.operand_count() == 4;  // a hint of how long to sleep
  decoder.finish(has_time ? 4 : 3);
  operation.d = decoder.destination(0, Type::pred);
  details.address = decoder.address(decoder.operand(1));
  details.state = decoder.source(2, details.has_parity ? Type::b32 : Type::b64);
  operation.details = decoder.keep_details(details);
  operation.execute = &wait_at_mbarrier;
}

void translate_mbarrier(Decoder& decoder, Operation& operation) {
  const std::size_t function = decoder.take_one_of(
      {"init", "inval", "arrive", "test_wait", "try_wait", "arrive_drop", "expect_tx", "complete_tx", "pending_count"});
  decoder.take_one_of({"shared", "shared::cta", "shared::cluster"});
  if (decoder.take_type() != Type::b64) decoder.reject("type b64 is expected");
  MbarrierDetails details{.state = decoder.frame().of_sink(),
                          .count = decoder.frame().of_constant(1, 4),
                          .bytes = decoder.frame().of_constant(0, 4)};
  switch (function) {
    case 0:
      decoder.finish(2);
      details.count = decoder.source(1, Type::u32);
      operation.execute = &init_mbarrier;
      break;
    case 1:
      decoder.finish(1);
      operation.execute = &invalidate_mbarrier;
      break;
    case 2: return translate_arrive(decoder, operation, details);
    case 3:
    case 4: return translate_wait(decoder, operation, details);
    case 5: details.drops = true; return translate_arrive(decoder, operation, details);
    case 6:
    case 7:
      decoder.take("relaxed");
      decoder.take_one_of({"cta", "cluster"});
      decoder.finish(2);
      details.bytes = decoder.source(1, Type::u32);
      operation.execute = function == 6 ? &change_transactions<true> : &change_transactions<false>;
      break;
    case 8:
      decoder.read_rows(operation, Type::u32, {Type::b64});
      operation.execute = &count_pending;
      return;
    default: decoder.reject("the function is not supported");
  }
  details.address = decoder.address(decoder.operand(0));
  operation.details = decoder.keep_details(details);
}

void translate_membar(Decoder& decoder, Operation& operation) {
  const std::size_t scope = decoder.take_one_of({"cta", "gl", "sys"});
  decoder.finish(0);
  operation.execute = scope == 0 ? &fence : &fence_blocks;
}

/// fence.proxy.tensormap::generic.acquire.gpu [map], 128: maps are read when a copy uses them.
void translate_map_fence(Decoder& decoder, Operation& operation) {
  decoder.take_one_of({"acquire", "release"});
  decoder.take_one_of({"cta", "cluster", "gpu", "sys"});
  if (!decoder.next().empty()) decoder.reject(joined("modifier .", decoder.next(), " is not supported here"));
  operation.execute = &fence;
}

void translate_fence(Decoder& decoder, Operation& operation) {
  if (decoder.take("proxy")) {
    if (decoder.take("alias") || decoder.take("tensormap::generic")) return translate_map_fence(decoder, operation);
    if (!decoder.take("async")) decoder.reject(".proxy.async is expected");
    decoder.take_one_of({"shared::cta", "shared::cluster", "global"});
    operation.execute = &fence_proxy;
  } else if (decoder.take("mbarrier_init")) {
    if (!decoder.take("release") || !decoder.take("cluster")) decoder.reject(".release.cluster is expected");
    operation.execute = &fence_mbarrier_init;
  } else {
    decoder.take_one_of({"sc", "acq_rel", "acquire", "release"});
    const std::size_t scope = decoder.take_one_of({"cta", "cluster", "gpu", "sys"});
    operation.execute = scope < 2 ? &fence : &fence_blocks;
  }
  decoder.finish(0);
}

constexpr Opcode kOpcodes[] = {
    {"cp", translate_cp}, {"mbarrier", translate_mbarrier}, {"membar", translate_membar}, {"fence", translate_fence}};

}  // namespace

std::span<const Opcode> asynchronous_opcodes() { return kOpcodes; }

}  // namespace gradring::simulated_gpu
