// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

#include "train/report/line_file.h"
#include "train/report/metrics_sink.h"

namespace gradring::train {

/// metrics.jsonl: one JSON object a line, each line whole. A number that is none (a loss of NaN) is null.
///
///   {"event":"step","step":1,"epoch":0,"loss":2.3,"lr":0.001,"samples":64,"samples_per_second":5000.0,"data_wait":0.0001,
///    "loss_scale":65536.0,"skipped":false,"underflow":0.02}
///   {"event":"step","step":2,...,"skipped":true,"non_finite":"fc_layers.0.weight"}
///   {"event":"eval","epoch":0,"accuracy":0.97,"loss":0.09,"samples":10000}
///
/// Errors    EnvironmentError if the file cannot be made or written (a full disk); what is there stays whole lines.
class JsonLinesSink final : public MetricsSink {
 public:
  /// Adds to what is there.
  explicit JsonLinesSink(const std::filesystem::path& path) : path_(path), file_(std::in_place, path) {}
  void step(const StepRecord& record) override;
  void eval(const EvalRecord& record) override;
  void remark(const std::string&) override {}
  void went_back(std::int64_t steps, std::int64_t epoch) override;

 private:
  std::filesystem::path path_;
  std::optional<LineFile> file_;  // closed while it is shortened
};

/// Takes back what a run wrote that went on behind the `steps`th step, of which the last epochs is `epoch`: later steps,
/// evaluations of that epoch and later ones, and a line that was cut short. A file that is not there stays so.
///
/// Errors    EnvironmentError.
void keep_metrics_until(const std::filesystem::path& path, std::int64_t steps, std::int64_t epoch);

}  // namespace gradring::train
