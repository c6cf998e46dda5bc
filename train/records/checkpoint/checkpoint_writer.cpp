// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/checkpoint_writer.h"

#include <utility>

namespace gradring::train {

CheckpointWriter::~CheckpointWriter() {
  if (writing_.valid()) writing_.wait();
}

void CheckpointWriter::save(Checkpoint checkpoint) {
  collect();
  failure_ = nullptr;
  if (checkpoint.step < step_) saved_step_ = failed_step_ = -1;  // after a rollback
  step_ = checkpoint.step;
  writing_ = std::async(std::launch::async, [this, checkpoint = std::move(checkpoint), begin = Clock::now()] {
    return write(checkpoint, begin);
  });
}

CheckpointWriter::Written CheckpointWriter::write(const Checkpoint& checkpoint, Clock::time_point begin) {
  Written written;
  check(written.remarks);
  if (hooks_.before) hooks_.before();
  try {
    written.problems = directory_.save(checkpoint);
  } catch (const FileError&) {
    check(written.remarks);
    throw;
  }
  check(written.remarks);
  if (hooks_.saved) hooks_.saved(checkpoint.step);
  written.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return written;
}

void CheckpointWriter::check(Problems& remarks) const {
  if (!hooks_.check) return;
  for (std::string& remark : hooks_.check()) remarks.push_back(std::move(remark));
}

/// Waits for the checkpoint that is being written, and keeps its result.
void CheckpointWriter::collect() {
  if (!writing_.valid()) return;
  try {
    const Written written = writing_.get();
    saved_.push_back({.step = step_, .seconds = written.seconds});
    problems_.insert(problems_.end(), written.remarks.begin(), written.remarks.end());
    for (const std::string& problem : written.problems)
      problems_.push_back("after saving the checkpoint of step " + std::to_string(step_) + ": " + problem);
    failures_ = 0;
    saved_step_ = step_;
  } catch (const LostDirectoryError&) {
    lost_ = failure_ = std::current_exception();
  } catch (const std::exception& error) {
    problems_.push_back(failed_part() + "checkpoint of step " + std::to_string(step_) +
                        " could not be saved: " + error.what());
    failure_ = std::current_exception();
    if (saved_step_ != step_ && std::exchange(failed_step_, step_) != step_) ++failures_;
  }
}

/// A checkpoint that was saved before its evaluation stays on the disk if it cannot be replaced.
std::string CheckpointWriter::failed_part() const { return saved_step_ == step_ ? "the evaluation in the " : "the "; }

bool CheckpointWriter::is_idle(std::chrono::milliseconds patience) {
  if (writing_.valid() && writing_.wait_for(patience) == std::future_status::ready) collect();
  return !writing_.valid();
}

std::vector<std::string> CheckpointWriter::take_problems() {
  is_idle(std::chrono::milliseconds(0));
  if (lost_) std::rethrow_exception(lost_);
  return std::exchange(problems_, {});
}

void CheckpointWriter::finish() {
  collect();
  if (!failure_) return;
  try {
    std::rethrow_exception(failure_);
  } catch (const FileError& error) {
    throw SaveError(failed_part() + "last checkpoint could not be saved: " + error.what());
  }
}

}  // namespace gradring::train
