// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "comm/process_group.h"
#include "kernels/runtime/error.h"
#include "nn/parameter/arena.h"
#include "train/report/summary.h"

namespace gradring::train {

/// Replicas differ. Exit code 163.
class ReplicaError : public Error, public ExitsWith<kReplicasDiffer> {
 public:
  using Error::Error;
};

/// SHA-256 of all weights: f32 little-endian, in state_dict order and PyTorch's layout. The weights must be in host
/// memory.
Sha256 hash_weights(std::span<const nn::Parameter> parameters, const nn::Arena& weights);

/// Checks that a hash is equal on all ranks. `what` names the content for the message.
///
/// Errors    ReplicaError with the ranks that differ from the majority; comm::CommError.
void check_replicas(comm::ProcessGroup& group, const Sha256& mine, const std::string& what);

}  // namespace gradring::train
