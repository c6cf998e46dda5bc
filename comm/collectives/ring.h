// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/collectives/schedule.h"

namespace gradring::comm {

/// Ring collectives: rank r sends to next_rank = r + 1 and receives from prev_rank = r - 1, modulo the world size W.
/// The elements are split into one shard per rank (comm/transport/segment.h), the shards into chunks that are sent one
/// after the other.
///
/// reduce_scatter, W - 1 steps: in step i rank r sends shard r - 1 - i and adds what it receives to shard r - 2 - i.
/// The sum of shard s starts at rank s + 1 and is complete at rank s.
///
/// all_gather, W - 1 steps: in step i rank r sends shard r - i and receives shard r - 1 - i.
///
/// all_reduce: reduce_scatter, then all_gather.
///
/// Numerics  shard s = (((x[s+1] + x[s+2]) + x[s+3]) + ...) + x[s], ranks modulo W, for any chunk size. It is computed
///           once and copied, so all ranks hold the same bits.
/// Cost      an all_reduce sends and receives 2 (W - 1) / W of the elements per rank, the other two half of that: the
///           minimum. The steps grow with W; a tree has fewer.
/// Source    Patarasuk, Yuan: "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
/// Example   tests/comm/collectives/schedule_test.cpp
extern const Schedule kRingReduceScatter;
extern const Schedule kRingAllGather;
extern const Schedule kRingAllReduce;

}  // namespace gradring::comm
