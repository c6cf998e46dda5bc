// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint_writer.h"

#include <utility>

#include "train/checkpoint/error.h"

namespace gradring::train {

CheckpointWriter::~CheckpointWriter() {
  if (writing_.valid()) writing_.wait();
}

void CheckpointWriter::save(Checkpoint checkpoint) {
  collect();
  failure_ = nullptr;
  writing_ = std::async(std::launch::async, [this, checkpoint = std::move(checkpoint)] {
    Problems problems = directory_.save(checkpoint);
    if (saved_) saved_(checkpoint.step);
    return problems;
  });
}

/// Waits for what is being written, and keeps what came of it.
void CheckpointWriter::collect() {
  if (!writing_.valid()) return;
  try {
    for (std::string& problem : writing_.get()) problems_.push_back(std::move(problem));
  } catch (const std::exception& error) {
    problems_.emplace_back(error.what());
    failure_ = std::current_exception();
  }
}

std::vector<std::string> CheckpointWriter::take_problems() {
  if (writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) collect();
  return std::exchange(problems_, {});
}

void CheckpointWriter::finish() {
  collect();
  if (!failure_) return;
  try {
    std::rethrow_exception(failure_);
  } catch (const FileError& error) {
    throw LastCheckpointError(error.what());
  }
}

}  // namespace gradring::train
