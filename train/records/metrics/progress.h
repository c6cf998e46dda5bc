// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "train/options/choice.h"
#include "train/records/metrics/console.h"
#include "train/records/metrics/metrics.h"

namespace gradring::train {

enum class ProgressStyle : std::uint8_t { automatic, bar, plain, none };
template <>
inline constexpr auto kWords<ProgressStyle> = std::to_array<std::string_view>({"auto", "bar", "plain", "none"});

/// Shows the progress of a run on `out`, which must outlive the sink:
///
///   bar     one line that is redrawn, as wide as the terminal is then; evaluations and skipped steps replace it
///             Epoch 1:  43%|#################                       | 403/938 [00:12<00:16, 33.1it/s, loss=0.2131]
///           its total is the steps that are left of the epoch, and of --steps
///   plain   for logs: a line for the first step of an epoch and five more, one for each skipped step and evaluation
///             Train: 1 [ 400/938 ( 43%)]  Loss: 0.2130 (0.2310)  33.1it/s, 2118/s  LR: 1.0e-03  Data: 0.0002
///   auto    bar on a terminal, plain elsewhere and where TERM is dumb or not set
///   none    nothing but remarks, on standard error
///
/// Units     Loss: of this step, and in parentheses the mean of the epoch; Data: seconds that the step waited for the
///           loader.
std::unique_ptr<MetricsSink> make_progress(ProgressStyle style, Console& out);

/// Writes logs/rank_<N>.log in a run directory: where rank N runs, its progress in the plain style, and why it failed.
/// Each line begins with the time.
///
/// Errors    EnvironmentError if the file cannot be opened; in finish(), if it could not be written.
class RankLog final : public MetricsSink {
 public:
  /// Creates the folder of `path` if it is missing, as it is on machines without rank 0.
  explicit RankLog(const FileAt& file);
  void say(std::string_view line);
  void event(const RunEvent& event) override { progress_->event(event); }
  void remark(const std::string& text) override { say(text); }
  void finish() override { file_.finish(); }

 private:
  PatientLineFile file_;
  std::unique_ptr<MetricsSink> progress_;
};

}  // namespace gradring::train
