// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace gradring::kernels::bench {

/// Sees to it that the next access to these bytes goes to memory: no cache holds them. What is written there stays.
/// x86: evict_x86_64.cpp, line by line; elsewhere evict_by_reading.cpp, by filling the caches with something else.
void evict(std::span<const std::byte> bytes);

}  // namespace gradring::kernels::bench
