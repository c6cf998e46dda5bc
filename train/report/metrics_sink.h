// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gradring::train {

/// One optimizer step, as it is reported.
struct StepRecord {
  std::int64_t step = 0;   ///< 1 for the first step of the run
  std::int64_t epoch = 0;  ///< 0 for the first
  std::int64_t step_of_epoch = 0;
  std::int64_t steps_in_epoch = 0;
  double loss = 0;  ///< mean over the global batch, before the update
  double learning_rate = 0;
  std::int64_t samples = 0;  ///< in the global batch
  std::chrono::duration<double> duration{0};
  std::chrono::duration<double> data_wait{0};  ///< of that, waiting for the loader
  std::chrono::duration<double> exposed_communication{
      0};                               ///< of that, waiting for the ranks' gradients, which nothing hid
  std::optional<double> gradient_norm;  ///< before clipping; none where nothing is clipped
  double loss_scale = 1;                ///< by which the loss was multiplied for the backward pass
  bool skipped = false;                 ///< a gradient was not finite, so no weight was changed
  bool ends_run = false;                ///< and the training ends with an error, which says so
  std::string non_finite;               ///< the parameter whose gradient was the first of these, if that is known
  std::optional<double> underflow;      ///< share of gradients that f16 would lose; none where the loss is not scaled
};

/// One pass over the test set.
struct EvalRecord {
  std::int64_t epoch = 0;
  double accuracy = 0;  ///< 0..1
  double loss = 0;      ///< mean over the samples
  std::int64_t samples = 0;
  std::optional<double> ema_accuracy;  ///< of the averaged weights, where there are any
  std::optional<double> ema_loss;
};

/// Hears what happens in a run: files, progress bars, tests.
///
/// Threads   that of the trainer. A sink must not throw for what does not stop training, and must not take long.
class MetricsSink {
 public:
  virtual ~MetricsSink() = default;
  virtual void step(const StepRecord& record) = 0;
  virtual void eval(const EvalRecord& record) = 0;
  /// What a person should know of, and what does not stop training.
  virtual void remark(const std::string& text) = 0;
  /// What was reported of steps behind the `steps`th, and of evaluations of `epoch` and later ones, is undone: they come anew.
  virtual void went_back(std::int64_t /*steps*/, std::int64_t /*epoch*/) {}
};

/// Passes everything on to the sinks that were added, in their order; in the same order they are destroyed.
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
  void went_back(std::int64_t steps, std::int64_t epoch) override {
    for (const auto& sink : sinks_) sink->went_back(steps, epoch);
  }

 private:
  std::vector<std::unique_ptr<MetricsSink>> sinks_;
};

}  // namespace gradring::train
