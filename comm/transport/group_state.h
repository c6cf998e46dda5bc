// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gradring::comm {

/// A rank's state in its group. The last three are failures: the rank threw and names a failed rank.
enum class GroupState : std::uint32_t { member, left, lost_peer, timed_out, desync };

}  // namespace gradring::comm
