// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/report/line_file.h"

namespace gradring::train {

/// The report of one optimizer step.
struct StepRecord {
  std::int64_t step = 0;   ///< 1 for the first step of the run
  std::int64_t epoch = 0;  ///< 0 for the first
  std::int64_t step_of_epoch = 0;
  std::int64_t steps_in_epoch = 0;
  double loss = 0;  ///< mean over the global batch, before the update
  double learning_rate = 0;
  std::int64_t samples = 0;  ///< in the global batch
  std::chrono::duration<double> duration{0};
  std::chrono::duration<double> data_wait{0};              ///< part of duration: waiting for the loader
  std::chrono::duration<double> exposed_communication{0};  ///< part of duration: waiting for gradients of other ranks
  std::optional<double> gradient_norm;                     ///< before clipping; empty without clipping
  double loss_scale = 1;                                   ///< factor of the loss in the backward pass
  bool skipped = false;                                    ///< no weight was changed, because a gradient was not finite
  bool ends_run = false;            ///< the training ends with an error, which names the gradient
  std::string non_finite;           ///< the first parameter with such a gradient, if known
  std::optional<double> underflow;  ///< fraction of gradients that f16 would lose; empty without loss scaling
};

/// The report of one pass over the test set.
struct EvalRecord {
  std::int64_t epoch = 0;
  double accuracy = 0;  ///< 0..1
  double loss = 0;      ///< mean over the samples
  std::int64_t samples = 0;
  std::optional<double> ema_accuracy;  ///< of the averaged weights, if any
  std::optional<double> ema_loss;
};

/// Receives the events of a run.
///
/// Threads   the trainer's. A sink must not throw for errors that do not stop the training, and must not block for
///           long.
class MetricsSink {
 public:
  virtual ~MetricsSink() = default;
  virtual void step(const StepRecord& record) = 0;
  virtual void eval(const EvalRecord& record) = 0;
  /// A message for a person, which does not stop the training.
  virtual void remark(const std::string& text) = 0;
  /// The training rolled back to step `steps`. Later steps, and evaluations of `epoch` and later ones, will be reported
  /// again.
  virtual void rolled_back(std::int64_t /*steps*/, std::int64_t /*epoch*/) {}
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
  void step(const StepRecord& record) override {
    for (const auto& sink : sinks_) sink->step(record);
  }
  void eval(const EvalRecord& record) override {
    for (const auto& sink : sinks_) sink->eval(record);
  }
  void remark(const std::string& text) override {
    for (const auto& sink : sinks_) sink->remark(text);
  }
  void rolled_back(std::int64_t steps, std::int64_t epoch) override {
    for (const auto& sink : sinks_) sink->rolled_back(steps, epoch);
  }
  void finish() override {
    for (const auto& sink : sinks_) sink->finish();
  }

 private:
  std::vector<std::unique_ptr<MetricsSink>> sinks_;
};

/// Writes metrics.jsonl: one JSON object per line, only complete lines. NaN and infinity become null.
///
///   {"event":"step","step":1,"epoch":0,"loss":2.3,"lr":0.001,"samples":64,"samples_per_second":5000.0,
///    "data_wait":0.0001,"loss_scale":65536.0,"skipped":false,"underflow":0.02}
///   {"event":"step","step":2,...,"skipped":true,"non_finite":"fc_layers.0.weight"}
///   {"event":"eval","epoch":0,"accuracy":0.97,"loss":0.09,"samples":10000}
///
/// Errors    EnvironmentError if the file cannot be opened; in finish(), if it could not be written (a full disk).
class JsonLinesSink final : public MetricsSink {
 public:
  /// Appends to an existing file.
  explicit JsonLinesSink(const std::filesystem::path& path) : path_(path), file_(path) {}
  void step(const StepRecord& record) override;
  void eval(const EvalRecord& record) override;
  void remark(const std::string&) override {}
  void rolled_back(std::int64_t steps, std::int64_t epoch) override;
  void finish() override { file_.finish(); }

 private:
  std::filesystem::path path_;
  PatientLineFile file_;
};

/// Checks that metrics.jsonl can be truncated and appended to, and changes nothing. Ignores a missing file.
///
/// Errors    EnvironmentError.
void check_metrics(const std::filesystem::path& path);

/// Truncates a metrics.jsonl to what a run had written after `steps` steps, in epoch `epoch`: removes later steps,
/// evaluations of that epoch and later ones, and an incomplete line. Ignores a missing file.
///
/// Errors    EnvironmentError.
void truncate_metrics(const std::filesystem::path& path, std::int64_t steps, std::int64_t epoch);

}  // namespace gradring::train
