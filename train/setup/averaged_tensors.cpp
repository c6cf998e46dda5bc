// SPDX-License-Identifier: Apache-2.0
#include "train/setup/averaged_tensors.h"

#include <string>

#include "train/checkpoint/error.h"
#include "train/optim/optimizer.h"

namespace gradring::train {

void take_averaged(NamedTensors& named) {
  const std::string prefix = std::string(kEmaState) + ".";
  std::vector<TensorRecord> averaged;
  for (TensorRecord& tensor : named.contents.state) {
    if (!tensor.name.starts_with(prefix)) continue;
    averaged.push_back(tensor);
    averaged.back().name.erase(0, prefix.size());
  }
  if (averaged.empty())
    throw CheckpointError(named.from, "has no averaged weights",
                          "leave out --ema, or name a checkpoint of a training with --ema");
  named.contents.model = std::move(averaged);
}

}  // namespace gradring::train
