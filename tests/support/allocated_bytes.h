// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace gradring::tests {

/// The bytes that operator new has given out in this program: now, and at most since the last reset. Whoever links
/// allocated_bytes.cpp has its operator new replaced.
std::size_t allocated_bytes();
std::size_t peak_allocated_bytes();
void reset_peak_allocated_bytes();

}  // namespace gradring::tests
