// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/records/metrics/line_file.h"
#include "train/records/metrics/parameter_snapshot.h"
#include "train/records/metrics/run_events.h"

namespace gradring::train {

/// Receives the events of a run.
///
/// Threads   the trainer's. A sink must not throw for errors that do not stop the training, and must not block for
///           long.
class MetricsSink {
 public:
  virtual ~MetricsSink() = default;
  virtual void event(const RunEvent& event) = 0;
  /// Weights and gradients, with each evaluation, in runs whose --log has a sink that shows them (shows_parameters).
  virtual void parameters(const ParameterSnapshot& /*snapshot*/) {}
  /// A message for a person, which does not stop the training.
  virtual void remark(const std::string& text) = 0;
  /// The training rolled back: it has completed `steps` steps and `epochs` epochs. Later events will be reported again.
  virtual void rolled_back(std::int64_t /*steps*/, std::int64_t /*epochs*/) {}
  /// The training has ended, and its last checkpoint was saved.
  ///
  /// Errors    EnvironmentError if records are missing from a file.
  virtual void finish() {}
};

/// Forwards everything to its sinks, in the order in which they were added. Destroys them in that order.
class MetricsFan final : public MetricsSink {
 public:
  ~MetricsFan() override {
    for (auto& sink : sinks_) sink.reset();
  }
  void add(std::unique_ptr<MetricsSink> sink) { sinks_.push_back(std::move(sink)); }
  void event(const RunEvent& event) override {
    for (const auto& sink : sinks_) sink->event(event);
  }
  void parameters(const ParameterSnapshot& snapshot) override {
    for (const auto& sink : sinks_) sink->parameters(snapshot);
  }
  void remark(const std::string& text) override {
    for (const auto& sink : sinks_) sink->remark(text);
  }
  void rolled_back(std::int64_t steps, std::int64_t epochs) override {
    for (const auto& sink : sinks_) sink->rolled_back(steps, epochs);
  }
  void finish() override {
    for (const auto& sink : sinks_) sink->finish();
  }

 private:
  std::vector<std::unique_ptr<MetricsSink>> sinks_;
};

/// Writes metrics.jsonl as docs/metrics.md describes it: one JSON object per line, only complete lines.
///
/// Errors    EnvironmentError if the file cannot be opened; in finish(), if it could not be written (a full disk).
class JsonLinesSink final : public MetricsSink {
 public:
  /// Appends to an existing file. If the file is removed or cut, the header is repeated (PatientFile).
  explicit JsonLinesSink(const FileAt& file, std::chrono::milliseconds moment = std::chrono::seconds(1));
  void event(const RunEvent& event) override;
  void remark(const std::string&) override {}
  void rolled_back(std::int64_t steps, std::int64_t epochs) override;
  void finish() override { file_.finish(); }

 private:
  std::string header_before(const std::string& next) const;

  FileAt at_;
  std::optional<RunHeader> header_;  // of this start
  std::int64_t steps_ = 0;           // completed
  PatientLineFile file_;
};

/// Checks that metrics.jsonl can be truncated and appended to, and changes nothing. Ignores a missing file.
///
/// Errors    EnvironmentError.
void check_metrics(const FileAt& file);

/// Truncates a metrics.jsonl to what a run had written when it had completed `steps` steps and `epochs` epochs: removes
/// later events but faults, and an incomplete line. Ignores a missing file.
///
/// Errors    EnvironmentError.
void truncate_metrics(const FileAt& file, std::int64_t steps, std::int64_t epochs);

}  // namespace gradring::train
