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
  if (std::isfinite(record.loss)) mean_loss_ += (record.loss - mean_loss_) / static_cast<double>(++losses_);
}

std::string skip_text(const StepRecord& record) {
  const std::string whose = record.non_finite.empty() ? "a gradient" : "the gradient of " + record.non_finite;
  const std::string scale = record.loss_scale == 1 ? "" : fmt::format(" (loss scale {})", record.loss_scale);
  return fmt::format("Step {} is skipped: {} is not finite{}", record.step, whose, scale);
}

std::string eval_text(const EvalRecord& record) {
  const std::int64_t correct = std::llround(record.accuracy * static_cast<double>(record.samples));
  const std::string averaged =
      record.ema_accuracy ? fmt::format("; averaged weights {:.2f} %", 100 * *record.ema_accuracy) : "";
  return fmt::format("Epoch {}: test accuracy {:.2f} % ({} of {}), loss {:.4f}{}", record.epoch + 1,
                     100 * record.accuracy, correct, record.samples, record.loss, averaged);
}

}  // namespace gradring::train
