// SPDX-License-Identifier: Apache-2.0
#include "train/launch/places/places.h"

namespace gradring::train {
namespace {

/// The names that one family of MPI gives to what it tells its processes.
struct Names {
  const char *rank, *size, *local_rank, *local_size;
  const char* job;  ///< what no other run has
};

constexpr Names kFamilies[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "PMIX_NAMESPACE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_PORT"},
};

std::optional<WorkerEnvironment> place_by(const Names& names, const VariableReader& variables) {
  WorkerEnvironment it{.launcher = "mpirun"};
  // Slurm sets PMI_RANK, too, and knows the nodes better.
  if (!variables.has(names.local_rank)) return std::nullopt;
  if (!variables.place(names.rank, names.size, it.rank, it.world_size)) return std::nullopt;
  variables.place(names.local_rank, names.local_size, it.local_rank, it.local_world_size);
  // MPI does not count nodes. Where all have as many ranks, one after the other, that can be worked out.
  if (it.world_size % it.local_world_size == 0) {
    it.group_world_size = it.world_size / it.local_world_size;
    it.group_rank = it.rank / it.local_world_size;
  }
  it.role_rank = it.rank;
  it.role_world_size = it.world_size;
  it.run_id = variables.text(names.job, it.run_id);
  variables.read_common(it);
  return it;
}

}  // namespace

std::optional<WorkerEnvironment> place_by_mpirun(const VariableReader& variables) {
  for (const Names& names : kFamilies)
    if (auto it = place_by(names, variables)) return it;
  return std::nullopt;
}

}  // namespace gradring::train
