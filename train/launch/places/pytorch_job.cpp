// SPDX-License-Identifier: Apache-2.0
#include "train/launch/places/places.h"

namespace gradring::train {

std::optional<WorkerEnvironment> place_by_pytorch_job(const VariableReader& variables) {
  constexpr int kItsDefaultPort = 23456;
  WorkerEnvironment it{.master_port = kItsDefaultPort, .launcher = "PyTorchJob"};
  if (!variables.has("KUBERNETES_SERVICE_HOST") || !variables.place("RANK", "WORLD_SIZE", it.rank, it.world_size))
    return std::nullopt;
  it.group_rank = it.role_rank = it.rank;
  it.group_world_size = it.role_world_size = it.world_size;
  variables.read_common(it);
  return it;
}

}  // namespace gradring::train
