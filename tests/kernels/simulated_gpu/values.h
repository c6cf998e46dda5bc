// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

namespace gradring::simulated_gpu {

using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kLeast = std::numeric_limits<float>::denorm_min();
inline constexpr float kLeastNormal = std::numeric_limits<float>::min();
inline constexpr float kGreatest = std::numeric_limits<float>::max();
inline constexpr U32 kCanonicalNan = 0x7fffffff;

}  // namespace gradring::simulated_gpu
