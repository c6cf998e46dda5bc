// SPDX-License-Identifier: Apache-2.0
#include "train/report/plain_progress.h"

#include <fmt/format.h>

namespace gradring::train {
namespace {

constexpr std::int64_t kLines = 5;  // an epoch, behind that of its first step

bool worth_a_line(std::int64_t done, std::int64_t steps) {
  return done == 1 || done * kLines / steps != (done - 1) * kLines / steps;
}

}  // namespace

void PlainProgress::step(const StepRecord& record) {
  epoch_.add(record);
  if (record.skipped && !record.ends_run) write_(skip_text(record));
  const std::int64_t done = record.step_of_epoch + 1;
  const std::int64_t steps = record.steps_in_epoch;
  if (!worth_a_line(done, steps)) return;
  write_(fmt::format(
      "Train: {} [{:4}/{} ({:3}%)]  Loss: {:.4f} ({:.4f})  {:.1f}it/s, {:.0f}/s  LR: {:.1e}  Data: {:.4f}",
      record.epoch + 1, done, steps, 100 * done / steps, record.loss, epoch_.mean_loss(), epoch_.steps_per_second(),
      epoch_.samples_per_second(), record.learning_rate, record.data_wait.count()));
}

void PlainProgress::eval(const EvalRecord& record) { write_(eval_text(record)); }

}  // namespace gradring::train
