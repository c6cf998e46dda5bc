// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "data/datasets/dataset.h"
#include "kernels/kernel_set.h"
#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_writer.h"
#include "train/faults/step_hook.h"
#include "train/report/metrics.h"
#include "train/trainer/run_requests.h"

namespace gradring::train {

/// A checkpoint that a training resumes from.
struct ResumePoint {
  Checkpoint checkpoint;       ///< empty on ranks other than 0
  std::filesystem::path from;  ///< where it was read, for messages
};

/// Reads the newest valid checkpoint of this run, if there is one (--on-nan rollback); rejected ones become remarks.
using NewestCheckpoint = std::function<std::optional<ResumePoint>(std::vector<std::string>& remarks)>;

/// The trainer's dependencies: constructed in one place (cli/train_rank.cpp, or a test), passed by reference.
struct TrainerWorld {
  kernels::Device& device;
  const kernels::KernelSet& kernels;
  nn::Backend& backend;
  comm::ProcessGroup& group;
  const data::Dataset& train_set;
  const data::Dataset& test_set;
  MetricsSink& metrics;
  CheckpointSink* checkpoints = nullptr;    ///< null: this rank saves none
  RunRequests* requests = nullptr;          ///< null: this rank gets no requests
  StepHook* step_hook = nullptr;            ///< fault injection; null: nothing is called
  NewestCheckpoint newest_checkpoint = {};  ///< rank 0 only
};

}  // namespace gradring::train
