// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/first_weights.h"

#include <string>
#include <utility>

#include "train/core/trainer/finite_weights.h"
#include "train/core/trainer/parameter_names.h"
#include "train/core/trainer/torch_optimizer_state.h"
#include "train/core/trainer/training_state.h"

namespace gradring::train {
namespace {

/// Averaged weights that begin as the weights.
void begin_average(ReplicaState& state) {
  for (TensorRecord tensor : state.model) {
    tensor.name.insert(0, std::string(kEmaState) + ".");
    state.state.push_back(std::move(tensor));
  }
}

}  // namespace

LoadedWeights load_first_weights(Replica& replica, FirstWeights weights, const OptimizerSpec& optimizer,
                                 comm::ProcessGroup& group, Deadline deadline) {
  const ParameterNames names(replica.model());
  LoadedWeights loaded{.remarks = names.rename(weights.tensors, weights.from)};
  ReplicaState state{.model = std::move(weights.tensors), .state = {}, .step = replica.step().state(deadline)};
  std::string applied;  // empty: a new optimizer
  if (weights.optimizer) {
    names.rename(*weights.optimizer);
    SteppedOptimizer stepped =
        from_torch_optimizer(*weights.optimizer, optimizer, replica.parameters(), weights.optimizer_from);
    check_optimizer_values(stepped.state, weights.optimizer_from);
    applied = std::to_string(stepped.applied_steps);
    state.state = std::move(stepped.state);
    if (optimizer.ema > 0) begin_average(state);
  }
  applied = group.broadcast_on_host(applied, 0);
  if (applied.empty()) {
    replica.load_weights(state.model, weights.from, deadline);
    return loaded;
  }
  loaded.steps = state.step.applied_steps = std::stoi(applied);
  replica.load(state, weights.from, deadline);
  return loaded;
}

}  // namespace gradring::train
