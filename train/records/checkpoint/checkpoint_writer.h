// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "train/records/checkpoint/checkpoint_directory.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {

struct SavedCheckpoint {
  std::int64_t step = 0;
  double seconds = 0;  ///< from the call of save() to the disk
};

/// Takes the checkpoints of a trainer.
///
/// Threads   the trainer's.
class CheckpointSink {
 public:
  virtual ~CheckpointSink() = default;
  /// Starts saving a checkpoint, after the one before is written. take_problems() and finish() report errors.
  virtual void save(Checkpoint checkpoint) = 0;
  /// Whether nothing is being written; waits up to `patience` for that.
  virtual bool is_idle(std::chrono::milliseconds patience) = 0;
  /// The problems and remarks since the last call, one line each.
  ///
  /// Errors    LostDirectoryError if nothing can be saved any more.
  virtual std::vector<std::string> take_problems() = 0;
  /// The checkpoints that were saved since the last call.
  virtual std::vector<SavedCheckpoint> take_saved() { return {}; }
  /// How many of the newest steps in a row have no checkpoint because it could not be saved.
  virtual int failures() const = 0;
  /// Waits until the last checkpoint is on disk.
  ///
  /// Errors    SaveError if it could not be saved; LostDirectoryError.
  virtual void finish() = 0;
};

/// Functions that a CheckpointWriter calls for each checkpoint, on the writing thread.
struct SaveHooks {
  /// Before anything is written, and after a save: throws LostDirectoryError if nothing can be saved any more. Returns
  /// remarks for the user.
  std::function<std::vector<std::string>()> check = {};
  std::function<void()> before = {};                  ///< before anything is written; if it throws, nothing is written
  std::function<void(std::int64_t step)> saved = {};  ///< after the checkpoint is on disk
};

/// Writes checkpoints on a thread of its own, one at a time. save() waits until the one before is written.
///
/// Memory    one checkpoint.
class CheckpointWriter final : public CheckpointSink {
 public:
  explicit CheckpointWriter(CheckpointDirectory directory, SaveHooks hooks = {})
      : directory_(std::move(directory)), hooks_(std::move(hooks)) {}
  /// Waits for the checkpoint that is being written.
  ~CheckpointWriter() override;

  void save(Checkpoint checkpoint) override;
  bool is_idle(std::chrono::milliseconds patience) override;
  std::vector<std::string> take_problems() override;
  std::vector<SavedCheckpoint> take_saved() override { return std::exchange(saved_, {}); }
  int failures() const override { return failures_; }
  void finish() override;

 private:
  using Clock = std::chrono::steady_clock;
  using Problems = std::vector<std::string>;
  struct Written {
    Problems remarks = {};
    Problems problems = {};
    double seconds = 0;
  };
  Written write(const Checkpoint& checkpoint, Clock::time_point begin);
  void check(Problems& remarks) const;
  void collect();
  std::string failed_part() const;

  CheckpointDirectory directory_;
  SaveHooks hooks_;
  std::future<Written> writing_;   // invalid: nothing is being written
  std::int64_t step_ = 0;          // of the newest checkpoint
  std::int64_t saved_step_ = -1;   // of the newest checkpoint on disk
  std::int64_t failed_step_ = -1;  // the newest that is counted in failures_
  Problems problems_;
  std::vector<SavedCheckpoint> saved_;
  std::exception_ptr failure_;  // of the newest checkpoint
  std::exception_ptr lost_;     // LostDirectoryError
  int failures_ = 0;
};

}  // namespace gradring::train
