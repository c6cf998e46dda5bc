// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "train/launch/places/variable_reader.h"

namespace gradring::train {

/// A worker's place as one launcher tells it; nothing if that launcher did not start it. A source file each.
///
/// Errors    InvalidArgument that names the variable that cannot be.

/// RANK, WORLD_SIZE and the rest: gradring's launcher, torchrun, and ranks that were started by hand (RANK and WORLD_SIZE
/// alone: all on this node).
std::optional<WorkerEnvironment> place_by_torchrun(const VariableReader& variables);

/// Open MPI's OMPI_COMM_WORLD_*, or PMI_* of MPICH, Intel MPI and others that start by Hydra.
std::optional<WorkerEnvironment> place_by_mpirun(const VariableReader& variables);

/// Slurm's job step. A batch script, which has SLURM_PROCID too, is none, nor a step of one task.
std::optional<WorkerEnvironment> place_by_srun(const VariableReader& variables);

/// A pod of a Kubeflow PyTorchJob: RANK and WORLD_SIZE count pods, so this is the only worker of its node.
std::optional<WorkerEnvironment> place_by_pytorch_job(const VariableReader& variables);

}  // namespace gradring::train
