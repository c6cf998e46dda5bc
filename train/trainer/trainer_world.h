// SPDX-License-Identifier: Apache-2.0
#pragma once

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
#include "train/checkpoint/checkpoint_sink.h"
#include "train/report/metrics_sink.h"
#include "train/trainer/run_requests.h"

namespace gradring::train {

/// A checkpoint that a training goes on from.
struct ResumePoint {
  Checkpoint checkpoint;       ///< empty on ranks other than 0
  std::filesystem::path from;  ///< where it was read, for messages
};

/// Reads the newest sound checkpoint of this run, if there is one (--on-nan rollback); what it passed over, and why, becomes
/// remarks.
using NewestCheckpoint = std::function<std::optional<ResumePoint>(std::vector<std::string>& remarks)>;

/// The world that a trainer works in: made in one place (cli/train_rank.cpp, or a test), passed by reference.
struct TrainerWorld {
  kernels::Device& device;
  const kernels::KernelSet& kernels;
  nn::Backend& backend;
  comm::ProcessGroup& group;
  const data::Dataset& train_set;
  const data::Dataset& test_set;
  MetricsSink& metrics;
  CheckpointSink* checkpoints = nullptr;    ///< null: this rank saves none
  RunRequests* requests = nullptr;          ///< null: nobody asks this rank for anything
  NewestCheckpoint newest_checkpoint = {};  ///< of rank 0 alone
};

}  // namespace gradring::train
