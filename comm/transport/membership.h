// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gradring::comm {

/// How a rank's membership of its group stands. The three failures say why it threw; with them it names a culprit.
enum class Membership : std::uint32_t { member, left, lost_peer, timed_out, out_of_step };

}  // namespace gradring::comm
