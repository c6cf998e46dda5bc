// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>

#include "train/report/console.h"
#include "train/report/epoch_so_far.h"
#include "train/report/metrics_sink.h"

namespace gradring::train {

/// One line on a terminal, drawn again and again; an evaluation takes its place, and so does a step that is skipped. A bar
/// that is cut short, by an error, ends with its line, so that what follows has one of its own.
///
///   Epoch 1:  43%|#################                       | 403/938 [00:12<00:16, 33.1it/s, loss=0.2131]
class BarProgress final : public MetricsSink {
 public:
  /// `out` must outlive it.
  explicit BarProgress(Console& out) : out_(out) {}
  ~BarProgress() override;
  void step(const StepRecord& record) override;
  void eval(const EvalRecord& record) override;
  void remark(const std::string& text) override { write_line(text); }
  void went_back(std::int64_t, std::int64_t) override { epoch_ = {}; }

 private:
  void write_line(std::string_view text);
  void draw(const StepRecord& record);
  std::size_t columns() const;

  Console& out_;
  EpochSoFar epoch_;
  std::chrono::steady_clock::time_point drawn_at_{};
  bool line_open_ = false;
};

}  // namespace gradring::train
