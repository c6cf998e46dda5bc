// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <future>

#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/checkpoint_sink.h"

namespace gradring::train {

/// Writes checkpoints while training goes on, one at a time: who brings the next one waits until the one before is written.
///
/// Memory    one checkpoint.
class CheckpointWriter final : public CheckpointSink {
 public:
  /// `saved`, if given, hears of each checkpoint's step when it is safe; on the writing thread.
  explicit CheckpointWriter(CheckpointDirectory directory, std::function<void(std::int64_t step)> saved = {})
      : directory_(std::move(directory)), saved_(std::move(saved)) {}
  /// Waits for what is being written.
  ~CheckpointWriter() override;

  void save(Checkpoint checkpoint) override;
  bool is_idle(std::chrono::milliseconds patience) override;
  std::vector<std::string> take_problems() override;
  int failures() const override { return failures_; }
  void finish() override;

 private:
  using Problems = std::vector<std::string>;
  void collect();

  CheckpointDirectory directory_;
  std::function<void(std::int64_t)> saved_;
  std::future<Problems> writing_;  // invalid: nothing is
  std::int64_t step_ = 0;          // of the checkpoint that is written, or was written last
  Problems problems_;
  std::exception_ptr failure_;  // of the newest checkpoint
  int failures_ = 0;
};

}  // namespace gradring::train
