// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "train/report/epoch_so_far.h"
#include "train/report/metrics_sink.h"

namespace gradring::train {

/// A line for the first step of an epoch and then five more an epoch, one for each step that is skipped, and one for each
/// evaluation; for logs.
///
///   Train: 1 [ 400/938 ( 43%)]  Loss: 0.2130 (0.2310)  33.1it/s, 2118/s  LR: 1.0e-03  Data: 0.0002
///
/// Units     Loss: this step's, and in parentheses the epoch's mean; Data: seconds that the step waited for the loader.
class PlainProgress final : public MetricsSink {
 public:
  using WriteLine = std::function<void(std::string_view line)>;
  explicit PlainProgress(WriteLine write) : write_(std::move(write)) {}
  void step(const StepRecord& record) override;
  void eval(const EvalRecord& record) override;
  void remark(const std::string& text) override { write_(text); }
  void went_back(std::int64_t, std::int64_t) override { epoch_ = {}; }

 private:
  WriteLine write_;
  EpochSoFar epoch_;
};

}  // namespace gradring::train
