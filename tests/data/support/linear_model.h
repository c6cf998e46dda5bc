// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "data/datasets/dataset.h"

namespace gradring::tests {

struct LinearSpec {
  float learning_rate = 0.002f;  ///< of the first epoch; it falls as 1 / (1 + epoch / 4)
  int most_epochs = 30;
  int patience = 6;  ///< epochs without a better test accuracy before it stops
  std::uint32_t seed = 0;
};

/// Trains a softmax regression on all pixels, one sample a step, until it stops improving; returns its best accuracy on
/// `test` over all epochs. Choosing by the test set favours the linear model: a bound on it is a bound on every honest
/// one.
double best_linear_accuracy(const data::Dataset& train, const data::Dataset& test, const LinearSpec& spec);

}  // namespace gradring::tests
