// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/collectives/schedule.h"

namespace gradring::comm {

/// Barrier: in step i every rank tells the one 2^i places ahead, and hears from the one 2^i places behind, that it and
/// all it has heard of are here. Messages without elements.
///
/// Cost      ceil(log2 W) steps.
/// Source    Hensgen, Finkel, Manber: "Two algorithms for barrier synchronization", 1988.
extern const Schedule kDisseminationBarrier;

}  // namespace gradring::comm
