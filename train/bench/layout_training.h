// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/datasets/dataset.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/train_config.h"

namespace gradring::train::bench {

/// By whom, and in what pieces, the steps of a training are made.
struct Layout {
  int ranks = 1;
  std::int64_t passes = 1;  ///< of a rank in a step; where shards of samples decide on that: 0
  std::int64_t zero = 0;    ///< what ranks share out
  bool recomputes = false;  ///< activations are computed twice

  auto operator<=>(const Layout&) const = default;
};

/// A training that is to come out the same by every layout.
struct LayoutTrainingSpec {
  TrainConfig config;  ///< with a global batch, that every number of ranks divides
  const data::Dataset& train_set;
  const data::Dataset& test_set;
  std::int64_t save_at = 0;  ///< a step to keep a checkpoint of; 0: none
};

struct LayoutTraining {
  std::vector<double> losses;                 ///< of the steps
  std::vector<std::vector<float>> gradients;  ///< of the first step that changed weights, in state_dict order
  std::string parameters_sha256;
  Checkpoint checkpoint;
};

/// Trains on the CPU, ranks as threads of this process, one thread each; from `from` on, if it is given.
///
/// Errors    what the trainer throws on a rank, the lowest rank's first.
LayoutTraining train_by(const Layout& layout, const LayoutTrainingSpec& spec, const Checkpoint* from = nullptr);

}  // namespace gradring::train::bench
