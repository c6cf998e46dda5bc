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

/// All-reduce of ranks that reach each other's memory, in one step: rank r reads shard r of all peers, adds its own,
/// and writes the sum into all of them. No sum is copied twice, and ranks wait for each other twice for any world size.
///
/// Numerics  shard s = (((x[s+1] + x[s+2]) + x[s+3]) + ...) + x[s], ranks modulo W: the order, and so the bits, of the
///           ring.
/// Cost      one step. Each rank reads and writes as many elements as the range has, W slices at a time; the ring reads
///           3 (W - 1) / W times as many, and writes 2 (W - 1) / W times.
/// Source    the two-shot all-reduce of GPUs that share memory; here the writer does the second half, the all-gather.
/// Example   tests/comm/collectives/schedule_test.cpp
extern const Schedule kDirectAllReduce;

/// Chain broadcast: the root's elements travel from rank to rank in chunks, so that all links are busy at once. In step
/// i the rank at distance d from the root sends chunk i - d and receives chunk i - d + 1. In the last step the last
/// rank sends an empty message to the root, which otherwise would never learn that a rank names another root.
///
/// Cost      chunks + W - 2 steps; every rank but the last sends all elements once.
extern const Schedule kChainBroadcast;

/// All-gather by recursive doubling: the ranks are halves of halves of ..., and in step i each rank exchanges what its
/// 2^i ranks hold for what the other 2^i hold. Where the last half is short, one of its ranks sends to several. In one
/// more step every rank sends an empty message to the next one (schedule.h), but not in a world of two, which needs none.
/// Does not chunk: for small values.
///
/// Cost      ceil(log2 W) + 1 steps, 1 if W = 2; every element is received once.
/// Source    Thakur, Rabenseifner, Gropp: "Optimization of collective communication operations in MPICH", 2005; they
///           treat worlds that are no power of two in other ways.
extern const Schedule kDoublingAllGather;

/// Broadcast along a binomial tree: in step i the 2^i ranks that have the elements send them to 2^i others. In one more
/// step every rank sends an empty message to the next one. Does not chunk: for small values.
///
/// Cost      ceil(log2 W) + 1 steps; the root sends all elements ceil(log2 W) times.
extern const Schedule kTreeBroadcast;

/// Barrier: in step i every rank sends an empty message to the rank 2^i ahead and receives one from the rank 2^i
/// behind.
///
/// Cost      ceil(log2 W) steps.
/// Source    Hensgen, Finkel, Manber: "Two algorithms for barrier synchronization", 1988.
extern const Schedule kDisseminationBarrier;

}  // namespace gradring::comm
