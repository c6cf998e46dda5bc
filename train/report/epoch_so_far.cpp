// SPDX-License-Identifier: Apache-2.0
#include "train/report/epoch_so_far.h"

#include <fmt/format.h>

#include <cmath>

namespace gradring::train {

void EpochSoFar::add(const StepRecord& record) {
  if (record.step_of_epoch == 0) *this = {};
  time_ += record.duration;
  samples_ += record.samples;
  ++steps_;
  mean_loss_ += (record.loss - mean_loss_) / static_cast<double>(steps_);
}

std::string eval_text(const EvalRecord& record) {
  const std::int64_t correct = std::llround(record.accuracy * static_cast<double>(record.samples));
  return fmt::format("Epoch {}: test accuracy {:.2f} % ({} of {}), loss {:.4f}", record.epoch + 1,
                     100 * record.accuracy, correct, record.samples, record.loss);
}

}  // namespace gradring::train
