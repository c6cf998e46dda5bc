// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/collectives/schedule.h"

namespace gradring::comm {

/// The ring: rank r sends to next_rank = r + 1 and receives from prev_rank = r - 1, modulo the world. The elements are
/// cut into one shard per rank (partition.h), the shards into chunks that are moved one after the other.
///
/// reduce_scatter, W - 1 steps: a sum travels once around. Shard s starts at rank s + 1, every rank it comes to adds
/// its own part, and it ends complete at rank s.
/// In step i rank r sends shard r - 1 - i and adds what comes to shard r - 2 - i.
///
/// all_gather, W - 1 steps: the complete shards travel once around. In step i rank r sends shard r - i and
/// receives r - 1 - i.
///
/// all_reduce: the one, then the other.
///
/// Numerics  shard s = (((x[s+1] + x[s+2]) + x[s+3]) + ...) + x[s], ranks modulo W, whatever the chunk. It is computed
///           once and copied, so all ranks hold the same bits.
/// Cost      2 (W - 1) / W of the elements sent and as many received by each rank in an all_reduce, half of that in the
///           other two: the least that is possible. The steps grow with W; a tree has fewer.
/// Source    Patarasuk, Yuan: "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
/// Example   tests/comm/collectives/ring_test.cpp
extern const Schedule kRingReduceScatter;
extern const Schedule kRingAllGather;
extern const Schedule kRingAllReduce;

}  // namespace gradring::comm
