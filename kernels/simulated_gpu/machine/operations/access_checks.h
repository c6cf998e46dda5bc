// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/fault_report.h"
#include "kernels/simulated_gpu/machine/operations/access.h"

namespace gradring::simulated_gpu {

// What the checks of all state spaces share.

inline std::string bytes_at(unsigned bytes, std::uint64_t address) {
  return joined(bytes, (bytes == 1 ? " byte at " : " bytes at "), address);
}

inline void check_alignment(const Operation& operation, const Warp& warp, Mask active, unsigned bytes,
                            const Addresses& addresses, const Span& span, const char* space) {
  if ((span.bits & (bytes - 1)) == 0) [[likely]]
    return;
  for_each_lane(active, [&](unsigned lane) {
    if ((addresses.lane[lane] & (bytes - 1)) != 0)
      warp.fail(operation, lane,
                joined("misaligned address in ", space, " memory: ", bytes_at(bytes, addresses.lane[lane]),
                       ", which is not a multiple of ", bytes),
                FindingKind::misaligned);
  });
}

inline Counters::Instruction& counters_of(const Operation& operation, Warp& warp) {
  return warp.block().counters().instructions[warp.block().program().position_of(operation)];
}

/// Each is 0 or 1.
inline bool all_written(const std::uint8_t* written, std::size_t bytes) {
  if (bytes == 1) return *written != 0;
  if (bytes == 2) return load_from<std::uint16_t>(reinterpret_cast<std::uint64_t>(written)) == 0x0101;
  if (bytes == 4) return load_from<std::uint32_t>(reinterpret_cast<std::uint64_t>(written)) == 0x01010101;
  return std::memchr(written, 0, bytes) == nullptr;
}

/// Of bytes that were written in part, the others may be padding of a struct, which its copies read and write: the PTX
/// does not say.
template <class Describe>
void note_unwritten(const Operation& operation, Warp& warp, unsigned lane, const std::uint8_t* written, unsigned bytes,
                    StateSpace space, const Describe& describe) {
  const bool is_padding = std::memchr(written, 1, bytes) != nullptr;
  const bool is_local = space == StateSpace::local;
  const FindingKind unwritten = is_local ? FindingKind::local_not_written : FindingKind::not_written;
  note_finding(warp, is_padding ? FindingKind::padding : unwritten, operation, lane, [&] {
    return joined(is_local ? "local" : "global", " memory is read before it is written: ", describe(),
                  is_padding ? ", some of which were written" : "");
  });
}

/// What a lane of st writes, up to .v4.b64.
using StoredBytes = std::array<std::byte, 32>;
inline StoredBytes stored_bytes(const Operation& operation, Warp& warp, const AccessDetails& stored, unsigned lane) {
  StoredBytes bytes{};
  const unsigned element = stored.bytes / stored.elements;
  for (unsigned i = 0; i < stored.elements; ++i)
    std::memcpy(&bytes[i * element], warp.row<std::byte>(operation.slots[i]) + lane * stored.register_bytes, element);
  return bytes;
}

/// Constant memory and global memory, as resolve() does it.
bool resolve_constant(const Operation& operation, Warp& warp, Mask active, Access access, unsigned bytes,
                      Addresses& addresses);
bool resolve_global(const Operation& operation, Warp& warp, Mask active, Access access, unsigned bytes,
                    Addresses& addresses, const AccessDetails* stored);

}  // namespace gradring::simulated_gpu
