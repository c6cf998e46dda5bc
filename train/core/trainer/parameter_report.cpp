// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/parameter_report.h"

#include <vector>

#include "train/core/trainer/parameter_tensors.h"

namespace gradring::train {

void ParameterReport::report(std::int64_t step, Deadline deadline) {
  if (!is_on_) return;
  auto& [group, replica, metrics] = parts_;
  const bool leads = group.rank() == 0;
  if (!leads && zero_ == 0) return;  // sharded state is gathered from all ranks
  const auto values_of = [&](const kernels::Buffer& host, double factor) {
    return leads ? named_values(replica.parameters(), {replica.layout(), host.as<float>()}, static_cast<float>(factor))
                 : std::vector<ParameterValues>();
  };
  ParameterSnapshot snapshot{.step = step};
  // Before the weights, which may overwrite them.
  if (loss_scale_) snapshot.gradients = values_of(replica.gradients_on_host(deadline), 1 / *loss_scale_);
  snapshot.weights = values_of(replica.weights_on_host(deadline), 1);
  weights_gathered();
  if (leads) metrics.parameters(snapshot);
}

}  // namespace gradring::train
