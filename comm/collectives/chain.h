// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/collectives/schedule.h"

namespace gradring::comm {

/// Chain broadcast: the root's elements travel from rank to rank in chunks, so that all links are busy at once. In step
/// i the rank at distance d from the root sends chunk i - d and receives chunk i - d + 1.
///
/// Cost      chunks + W - 2 steps; every rank but the last sends all elements once.
extern const Schedule kChainBroadcast;

}  // namespace gradring::comm
