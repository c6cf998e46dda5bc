// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/collectives/schedule.h"

namespace gradring::comm {

/// Barrier: in step i every rank sends an empty message to the rank 2^i ahead and receives one from the rank 2^i
/// behind.
///
/// Cost      ceil(log2 W) steps.
/// Source    Hensgen, Finkel, Manber: "Two algorithms for barrier synchronization", 1988.
extern const Schedule kDisseminationBarrier;

}  // namespace gradring::comm
