// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gradring::simulated_gpu {

/// The generic addresses of shared and local memory begin here: far from those of a process, whose upper bits are
/// zero. Generic addresses of global memory and of parameters are those of the host.
inline constexpr std::uint64_t kSharedWindow = 0x7e00'0000'0000'0000;
inline constexpr std::uint64_t kLocalWindow = 0x7d00'0000'0000'0000;
inline constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 32;

/// The first address of a block's shared memory within its state space: compute capability 9.0 keeps 1 KB for itself,
/// so that 0 is not an address that a kernel may use.
inline constexpr std::uint32_t kFirstSharedAddress = 1024;
/// The same for local memory.
inline constexpr std::uint32_t kFirstLocalAddress = 1024;

constexpr bool is_in_shared_window(std::uint64_t address) { return address - kSharedWindow < kWindowBytes; }
constexpr bool is_in_local_window(std::uint64_t address) { return address - kLocalWindow < kWindowBytes; }

}  // namespace gradring::simulated_gpu
