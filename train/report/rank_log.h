// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "train/report/line_file.h"
#include "train/report/metrics_sink.h"
#include "train/report/plain_progress.h"

namespace gradring::train {

/// logs/rank_<N>.log in a run directory: where rank N runs, its progress as it saw it, and why it stopped if it failed.
/// Each line begins with the time.
///
/// Errors    EnvironmentError if the file cannot be made or written.
class RankLog final : public MetricsSink {
 public:
  explicit RankLog(const std::filesystem::path& path);
  void say(std::string_view line);
  void step(const StepRecord& record) override { progress_.step(record); }
  void eval(const EvalRecord& record) override { progress_.eval(record); }
  void remark(const std::string& text) override { say(text); }

 private:
  LineFile file_;
  PlainProgress progress_;
};

}  // namespace gradring::train
