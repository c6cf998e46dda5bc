// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/bench/kernel_case.h"

namespace gradring::train::bench {

/// Most values, or shapes, of one sweep.
inline constexpr std::size_t kMostOfSweep = 1000;

/// The values of "64", "16:512:*2" (16, 32, ... up to 512), or "16:64:+16" (16, 32, 48, 64). `option` names it in
/// messages. The last value is at most the given one.
///
/// Errors    UsageError if it is none of these, a number is not positive, the range is empty, or too long.
std::vector<std::int64_t> parse_values(std::string_view option, std::string_view text);

/// The shapes of "in=32,batch=16:512:*2": every combination; the last extent changes fastest.
///
/// Errors    UsageError, as above, or for an extent that is named twice.
std::vector<kernels::bench::Extents> parse_shapes(std::string_view text);

}  // namespace gradring::train::bench
