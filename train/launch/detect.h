// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "train/launch/worker_environment.h"

namespace gradring::train {

/// The environment of a worker as its launcher describes it; nothing if no known launcher started this process. Tries
/// in this order:
///
/// * RANK, WORLD_SIZE and the rest: gradring's launcher, torchrun, and ranks started by hand (RANK and WORLD_SIZE
///   alone: all on this node);
/// * OMPI_COMM_WORLD_* of Open MPI, or PMI_* of MPICH, Intel MPI and others that start by Hydra;
/// * a job step of Slurm, but not a batch script, which also has SLURM_PROCID, and not a step of one task;
/// * a pod of a PyTorchJob.
///
/// Errors    InvalidArgument that names the invalid variable: "RANK=4 is outside WORLD_SIZE=4: ranks go from 0 to 3".
std::optional<WorkerEnvironment> detect_environment(const VariableLookup& lookup);

/// A pod of a Kubeflow PyTorchJob: RANK and WORLD_SIZE count pods, so this is the only worker of its node.
///
/// Errors    InvalidArgument, as above.
std::optional<WorkerEnvironment> detect_pytorch_job(const VariableLookup& lookup);

}  // namespace gradring::train
