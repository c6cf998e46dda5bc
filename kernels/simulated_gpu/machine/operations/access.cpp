// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/operations/access.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "kernels/simulated_gpu/machine/operations/access_checks.h"
#include "kernels/simulated_gpu/memory/shared_memory.h"

namespace gradring::simulated_gpu {
namespace {

/// Whether a lane of st writes to shared memory what all other lanes of it write there, and, if `other` is not one of
/// these lanes, what memory holds.
bool is_same_value(const Operation& operation, Warp& warp, Mask active, unsigned lane, const Addresses& addresses,
                   const AccessDetails* stored, const Accessor& other) {
  if (stored == nullptr) return false;
  const StoredBytes bytes = stored_bytes(operation, warp, *stored, lane);
  Mask same = kLaneBits[lane];
  bool differs = false;
  for_each_lane(active & ~same, [&](unsigned others) {
    if (addresses.lane[others] != addresses.lane[lane]) return;
    same |= kLaneBits[others];
    differs |= stored_bytes(operation, warp, *stored, others) != bytes;
  });
  if (differs) return false;
  const bool is_of_these = other.is_thread() && other.warp() == warp.index() &&
                           (same & ~kLaneBits[lane] & kLaneBits[other.who % kWarpSize]) != 0;
  return is_of_these || std::memcmp(bytes.data(), warp.block().shared().at(addresses.lane[lane]), stored->bytes) == 0;
}

bool is_parameter(const Warp& warp, std::uint64_t address, std::size_t bytes) {
  const std::span<const std::byte> parameters = warp.block().launch().parameters;
  const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(parameters.data());
  return offset < parameters.size() && bytes <= parameters.size() - offset;
}

/// Those of an instruction that writes its registers, else null.
const AccessDetails* stored_of(const AccessDetails* details) {
  return details == nullptr || details->register_bytes == 0 ? nullptr : details;
}

SharedFinding note_access(SharedMemory& shared, Access access, bool is_strong, std::uint64_t address, unsigned bytes,
                          unsigned thread) {
  switch (access) {
    case Access::read:
      return is_strong ? shared.note_strong_read(address, bytes, thread) : shared.note_read(address, bytes, thread);
    case Access::write:
      return is_strong ? shared.note_strong_write(address, bytes, thread) : shared.note_write(address, bytes, thread);
    case Access::atomic: break;
  }
  return shared.note_atomic(address, bytes, thread);
}

/// By strong accesses to shared memory; lanes that access one word do so together.
void order_threads(Warp& warp, Mask active, Access access, const Addresses& addresses, const AccessOrder& order) {
  SharedOrder& shared = warp.block().shared().order();
  if (!order.releases && shared.is_idle()) return;
  for (Mask open = active; open != 0;) {
    const std::uint64_t address = addresses.lane[lowest_lane(open)];
    Mask lanes = 0;
    for_each_lane(open, [&](unsigned lane) { lanes |= addresses.lane[lane] == address ? kLaneBits[lane] : 0; });
    open &= ~lanes;
    const bool all = lanes == warp.living();
    if (access != Access::read)
      shared.write(address, warp.index(), lanes, all, order.releases, access == Access::atomic);
    if (access != Access::write) shared.read(address, warp.index(), lanes, all, order.acquires);
  }
}

void resolve_shared(const Operation& operation, Warp& warp, Mask active, Access access, unsigned bytes,
                    Addresses& addresses, const AccessDetails* details) {
  if (warp.block().cluster_size() > 1 && std::ranges::any_of(addresses.lane, [](std::uint64_t address) {
        return address >> kClusterRankShift != 0;
      })) [[unlikely]]
    return resolve_cluster(operation, warp, active, access, bytes, addresses);
  check_shared(operation, warp, active, access, bytes, addresses);
  SharedMemory& shared = warp.block().shared();
  shared.clocks().begin_access(warp.index());
  const bool is_strong = details != nullptr && details->order.is_strong;
  const bool is_right = is_strong                 ? false
                        : access == Access::read  ? shared.note_warp_read(addresses.lane, active, bytes, warp.index())
                        : access == Access::write ? shared.note_warp_write(addresses.lane, active, bytes, warp.index())
                                                  : false;
  for_each_lane(is_right ? 0 : active, [&](unsigned lane) {
    const std::uint64_t address = addresses.lane[lane];
    const unsigned thread = warp.thread_index(lane);
    const SharedFinding finding = note_access(shared, access, is_strong, address, bytes, thread);
    if (finding.problem == SharedFinding::Problem::none) [[likely]]
      return;
    const bool is_same = access == Access::write && finding.problem == SharedFinding::Problem::unordered_write &&
                         is_same_value(operation, warp, active, lane, addresses, stored_of(details), finding.other);
    note_shared_finding(warp, operation, lane, finding, bytes_at(bytes, address), verb(access),
                        is_same ? FindingKind::same_value : kind_of(finding.problem));
  });
  if (is_strong) order_threads(warp, active, access, addresses, details->order);
  const std::uint64_t host = reinterpret_cast<std::uint64_t>(shared.at(kFirstSharedAddress)) - kFirstSharedAddress;
  for (std::uint64_t& address : addresses.lane) address += host;
}

void resolve_local(const Operation& operation, Warp& warp, Mask active, Access access, unsigned bytes,
                   Addresses& addresses) {
  check_alignment(operation, warp, active, bytes, addresses, span_of(addresses, bytes), "local");
  for_each_lane(active, [&](unsigned lane) {
    const std::uint64_t offset = addresses.lane[lane] - kFirstLocalAddress;
    if (offset >= warp.local_bytes() || bytes > warp.local_bytes() - offset)
      warp.fail(operation, lane,
                joined("local memory is ", verb(access), " out of bounds: ", bytes_at(bytes, addresses.lane[lane]),
                       "; expected ", kFirstLocalAddress, " to ", kFirstLocalAddress + warp.local_bytes()),
                FindingKind::out_of_bounds);
    if (offset + bytes > warp.calls().local_end(lane)) [[unlikely]]
      note_finding(warp, FindingKind::undefined_value, operation, lane, [&] {
        return joined("local memory of a device function that has returned is ", verb(access), ": ",
                      bytes_at(bytes, addresses.lane[lane]));
      });
    std::uint8_t* const written = warp.local_written(lane) + offset;
    if (access == Access::read && !all_written(written, bytes))
      note_unwritten(operation, warp, lane, written, bytes, StateSpace::local,
                     [&] { return bytes_at(bytes, addresses.lane[lane]); });
    if (access != Access::read) std::memset(written, 1, bytes);
    addresses.lane[lane] = reinterpret_cast<std::uint64_t>(warp.local_memory(lane) + offset);
  });
}

void resolve_parameters(const Operation& operation, Warp& warp, Mask active, Access access, unsigned bytes,
                        Addresses& addresses) {
  const Span span = span_of(addresses, bytes);
  check_alignment(operation, warp, active, bytes, addresses, span, "parameter");
  if (access == Access::read && is_parameter(warp, span.first, span.last - span.first + bytes)) [[likely]]
    return;
  if (warp.calls().holds(span.first, span.last - span.first + bytes)) return;
  for_each_lane(active, [&](unsigned lane) {
    if (warp.calls().holds(addresses.lane[lane], bytes)) return;  // generic addresses of lanes may be of both kinds
    if (access != Access::read || !is_parameter(warp, addresses.lane[lane], bytes))
      warp.fail(operation, lane,
                joined("parameters are ", verb(access), " out of bounds, or written: ", bytes, " bytes"),
                FindingKind::out_of_bounds);
  });
}

/// Each lane's address says which space it is in; the lanes of a space go together.
void resolve_generic(const Operation& operation, Warp& warp, Mask active, Access access, unsigned bytes,
                     Addresses& addresses, const AccessDetails* details) {
  const auto part = [&](Mask lanes, StateSpace space, std::uint64_t window) {
    if (lanes == 0) return;
    Addresses own;
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      own.lane[lane] = addresses.lane[(lanes & kLaneBits[lane]) != 0 ? lane : lowest_lane(lanes)] - window;
    resolve(operation, warp, lanes, space, access, bytes, own, details);
    for_each_lane(lanes, [&](unsigned lane) { addresses.lane[lane] = own.lane[lane]; });
  };
  const Mask shared = active & lanes_where(is_in_shared_window, addresses.lane);
  const Mask local = active & lanes_where(is_in_local_window, addresses.lane);
  const Mask parameters =
      active & lanes_where(
                   [&](std::uint64_t address) {
                     return is_parameter(warp, address, bytes) || warp.calls().holds(address, bytes);
                   },
                   addresses.lane);
  part(shared, StateSpace::shared, kSharedWindow);
  part(local, StateSpace::local, kLocalWindow);
  part(parameters, StateSpace::param, 0);
  part(active & ~(shared | local | parameters), StateSpace::global, 0);
}

}  // namespace

Addresses addresses_of(const Decoder::Address& operand, Warp& warp, Mask active) {
  Addresses addresses;
  if (operand.width == 4) {
    const std::uint32_t* const base = warp.row<std::uint32_t>(operand.base);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) addresses.lane[lane] = base[lane] + operand.displacement;
  } else {
    const std::uint64_t* const base = warp.row<std::uint64_t>(operand.base);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) addresses.lane[lane] = base[lane] + operand.displacement;
  }
  if (active != kAllLanes) {
    const std::uint64_t any = addresses.lane[lowest_lane(active)];
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      addresses.lane[lane] = (active & kLaneBits[lane]) != 0 ? addresses.lane[lane] : any;
  }
  return addresses;
}

void check_shared(const Operation& operation, Warp& warp, Mask active, Access access, unsigned bytes,
                  const Addresses& addresses) {
  const Span span = span_of(addresses, bytes);
  check_alignment(operation, warp, active, bytes, addresses, span, "shared");
  const SharedMemory& shared = warp.block().shared();
  const SynchronizedMbarriers& mbarriers = warp.block().mbarriers();
  const bool is_inside = shared.holds(span.first, bytes) && shared.holds(span.last, bytes);
  if (!is_inside || mbarriers.overlaps(span.first, span.last - span.first + bytes)) [[unlikely]]
    for_each_lane(active, [&](unsigned lane) {
      const std::uint64_t address = addresses.lane[lane];
      if (!shared.holds(address, bytes))
        warp.fail(operation, lane,
                  joined("shared memory is ", verb(access), " out of bounds: ", bytes_at(bytes, address), "; expected ",
                         kFirstSharedAddress, " to ", kFirstSharedAddress + shared.bytes()),
                  FindingKind::out_of_bounds);
      if (mbarriers.overlaps(address, bytes))
        warp.fail(operation, lane,
                  joined("an mbarrier is ", verb(access), " by an instruction that is not for mbarriers"));
    });
  count_wavefronts(counters_of(operation, warp), active, bytes, addresses, span);
}

bool resolve(const Operation& operation, Warp& warp, Mask active, StateSpace space, Access access, unsigned bytes,
             Addresses& addresses, const AccessDetails* details) {
  switch (space) {
    case StateSpace::global:
      return resolve_global(operation, warp, active, access, bytes, addresses, stored_of(details));
    case StateSpace::shared: resolve_shared(operation, warp, active, access, bytes, addresses, details); break;
    case StateSpace::local: resolve_local(operation, warp, active, access, bytes, addresses); break;
    case StateSpace::param: resolve_parameters(operation, warp, active, access, bytes, addresses); break;
    case StateSpace::generic: resolve_generic(operation, warp, active, access, bytes, addresses, details); break;
    case StateSpace::constant: return resolve_constant(operation, warp, active, access, bytes, addresses);
  }
  return false;
}

Addresses resolve_operand(const Operation& operation, Warp& warp, Mask active, Access access) {
  const auto& details = *static_cast<const AccessDetails*>(operation.details);
  Addresses addresses = addresses_of(details.address, warp, active);
  resolve(operation, warp, active, details.space, access, details.bytes, addresses, &details);
  return addresses;
}

StateSpace take_state_space(Decoder& decoder) {
  switch (decoder.take_one_of({"global", "shared", "shared::cta", "local", "param", "param::entry", "param::func",
                               "shared::cluster", "const"})) {
    case 0: return StateSpace::global;
    case 1:
    case 2: return StateSpace::shared;
    case 3: return StateSpace::local;
    case 4:
    case 5:
    case 6: return StateSpace::param;
    case 7: return StateSpace::shared;
    case 8: return StateSpace::constant;
    default: return StateSpace::generic;
  }
}

void decode_access(Decoder& decoder, Operation& operation, const ptx::Operand& address, AccessDetails details) {
  details.address = decoder.address(address);
  operation.details = decoder.keep_details(details);
  note_shared_access(decoder, details.space, details.bytes);
}

void note_shared_access(Decoder& decoder, StateSpace space, unsigned bytes) {
  Program& program = decoder.frame().program();
  if (space == StateSpace::shared || space == StateSpace::generic)
    program.smallest_access = std::min<std::size_t>(program.smallest_access, bytes);
}

}  // namespace gradring::simulated_gpu
