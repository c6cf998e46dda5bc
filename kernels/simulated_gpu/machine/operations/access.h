// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/simulated_gpu/machine/decoder.h"
#include "kernels/simulated_gpu/machine/lanes.h"
#include "kernels/simulated_gpu/machine/operations/span.h"
#include "kernels/simulated_gpu/machine/program.h"
#include "kernels/simulated_gpu/machine/warp.h"
#include "kernels/simulated_gpu/memory/access_log.h"

namespace gradring::simulated_gpu {

enum class StateSpace : std::uint8_t { generic, global, shared, local, param, constant };

/// What ld, st, atom and red say of the order of threads.
struct AccessOrder {
  bool is_strong = false;  ///< relaxed, acquire, release or atomic; not volatile (docs/simulated_gpu.md)
  bool acquires = false;
  bool releases = false;
};

/// Details of an operation that accesses memory.
struct AccessDetails {
  StateSpace space = StateSpace::generic;
  unsigned bytes = 4;           ///< of each thread
  unsigned elements = 1;        ///< of a vector, whose rows are Operation::slots
  unsigned register_bytes = 0;  ///< of st: the width of these rows
  Decoder::Address address;
  AccessOrder order{};
};

using Access = AccessLog::Kind;

/// The addresses of `active` lanes, in the state space of the instruction.
Addresses addresses_of(const Decoder::Address& operand, Warp& warp, Mask active);

/// Turns addresses of a state space into those of the host's memory, after all checks: alignment, bounds, whether
/// what is read was written, races. Notes what is written, and counts.
///
/// `details`: of ld, st, atom and red, else null.
///
/// Returns   whether all lanes are known to access the same bytes.
/// Errors    Fault.
bool resolve(const Operation& operation, Warp& warp, Mask active, StateSpace space, Access access, unsigned bytes,
             Addresses& addresses, const AccessDetails* details = nullptr);

/// An address of shared::cluster: the block that it is in, and its address there.
///
/// Errors    Fault if the cluster has no such block, or if that has ended.
struct RemoteAddress {
  Block* block = nullptr;
  std::uint64_t address = 0;
};
RemoteAddress remote_address(const Operation& operation, Warp& warp, unsigned lane, std::uint64_t address);
/// The part of resolve() for addresses of shared::cluster, some of which are those of other blocks. Races with these
/// are not looked for.
void resolve_cluster(const Operation& operation, Warp& warp, Mask active, Access access, unsigned bytes,
                     Addresses& addresses);

/// The addresses of an operation with AccessDetails, in the host's memory, after these checks.
Addresses resolve_operand(const Operation& operation, Warp& warp, Mask active, Access access);

/// The part of these checks that does not depend on when bytes of shared memory are accessed: alignment, bounds,
/// mbarriers. Counts.
void check_shared(const Operation& operation, Warp& warp, Mask active, Access access, unsigned bytes,
                  const Addresses& addresses);
/// Counts the reads of some lanes as one request of global memory.
void count_global_reads(const Operation& operation, Warp& warp, Mask active, unsigned bytes,
                        const Addresses& addresses);
/// That global memory holds what one lane reads, and that it was written.
void check_global_read(const Operation& operation, Warp& warp, unsigned lane, unsigned bytes, std::uint64_t address);

/// Takes the state space of ld, st, atom.
StateSpace take_state_space(Decoder& decoder);
/// Fills in Operation::details.
void decode_access(Decoder& decoder, Operation& operation, const ptx::Operand& address, AccessDetails details);
/// Notes that the kernel accesses so few bytes of shared memory at once.
void note_shared_access(Decoder& decoder, StateSpace space, unsigned bytes);

template <class T>
T load_from(std::uint64_t address) {
  T value;
  __builtin_memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

template <class T>
void store_to(std::uint64_t address, T value) {
  __builtin_memcpy(reinterpret_cast<void*>(address), &value, sizeof value);
}

}  // namespace gradring::simulated_gpu
