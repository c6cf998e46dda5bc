// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <future>

#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/checkpoint_sink.h"

namespace gradring::train {

/// Writes checkpoints while training goes on, one at a time: who brings the next one waits until the one before is written.
///
/// Memory    one checkpoint.
class CheckpointWriter final : public CheckpointSink {
 public:
  explicit CheckpointWriter(CheckpointDirectory directory) : directory_(std::move(directory)) {}
  /// Waits for what is being written.
  ~CheckpointWriter() override;

  void save(Checkpoint checkpoint) override;
  std::vector<std::string> take_problems() override;
  void finish() override;

 private:
  using Problems = std::vector<std::string>;
  void collect();

  CheckpointDirectory directory_;
  std::future<Problems> writing_;  // invalid: nothing is
  Problems problems_;
  std::exception_ptr failure_;  // of the newest checkpoint
};

}  // namespace gradring::train
