// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/collectives/schedule.h"

namespace gradring::comm {

/// Broadcast along the ring: the root's elements go from rank to rank, chunk by chunk, all links busy at once. In step
/// i the rank that is d places after the root sends chunk i - d and receives chunk i - d + 1.
///
/// Cost      chunks + W - 2 steps; every rank but the last sends all elements once.
extern const Schedule kPipelineBroadcast;

}  // namespace gradring::comm
