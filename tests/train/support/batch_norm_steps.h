// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "comm/process_group.h"
#include "nn/models/model.h"
#include "tests/train/support/rank_rig.h"

namespace gradring::tests {

/// A residual network with batch normalization alone, with a ReLU, and with a shortcut and a ReLU.
extern const nn::ModelText kBatchNormModel;

/// What steps of SGD at a learning rate of 0.01 leave.
struct TrainedSteps {
  static constexpr int kSteps = 10;
  static constexpr std::int64_t kGlobalBatch = 12;

  std::vector<double> losses;
  std::vector<std::vector<float>> weights;
  std::vector<std::vector<float>> buffers;  ///< rank 0's
};

/// The running statistics of a replica.
std::vector<std::vector<float>> running_statistics(train::Replica& replica);

/// Trains one rank of a group, of which rank r gets samples[r] of each step's 12.
TrainedSteps train_batch_norm(comm::ProcessGroup& group, const std::vector<std::int64_t>& samples,
                              RankRig::Options options);

/// The losses to 1e-6, weights and running statistics to 1e-5.
void expect_same_steps(const TrainedSteps& actual, const TrainedSteps& expected);

}  // namespace gradring::tests
