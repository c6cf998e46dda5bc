// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "data/datasets/dataset.h"
#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "train/core/data_parallel/device_replica.h"
#include "train/core/faults/fault.h"
#include "train/core/trainer/dataset_record.h"
#include "train/records/checkpoint/checkpoint.h"
#include "train/records/checkpoint/checkpoint_writer.h"
#include "train/records/checkpoint/torch_optimizer.h"
#include "train/records/metrics/metrics.h"
#include "train/records/trace/run_trace.h"

namespace gradring::train {

/// A request to a running training.
enum class RunRequest : std::uint8_t {
  none,
  save,  ///< save a checkpoint and continue
  stop,  ///< save a checkpoint and exit
};

/// RunPosition::doing of a rank that begins a step.
inline constexpr const char* kTraining = "training";

/// The position of a rank.
struct RunPosition {
  const char* doing = "";  ///< "starting", kTraining, "evaluating", "saving"
  std::int64_t steps = 0;  ///< completed
  std::int64_t epoch = 0;
};

/// The source of requests. The ranks agree on them at the next boundary between steps.
///
/// Threads   the trainer's.
class RunRequests {
 public:
  virtual ~RunRequests() = default;
  /// The strongest request to this rank since the last call.
  virtual RunRequest take() = 0;
  /// Reports the position.
  virtual void at(const RunPosition& position) = 0;
};

/// A training ended early, after saving a checkpoint, on request. Exit code 143.
class Preempted : public Error {
 public:
  using Error::Error;
};

/// A checkpoint that a training resumes from.
struct ResumePoint {
  Checkpoint checkpoint;       ///< empty on ranks other than 0
  std::filesystem::path from;  ///< where it was read, for messages
};

/// Weights from elsewhere, with any spelling of their names (ParameterNames).
struct FirstWeights {
  std::vector<TensorRecord> tensors;  ///< empty on ranks other than 0
  std::filesystem::path from;
  std::optional<TorchOptimizer> optimizer = {};  ///< goes on with them; empty on ranks other than 0
  std::filesystem::path optimizer_from = {};
};

/// Reads the newest valid checkpoint of this run, if there is one (--on-nan rollback); rejected ones become remarks.
using NewestCheckpoint = std::function<std::optional<ResumePoint>(std::vector<std::string>& remarks)>;

/// The trainer's dependencies: constructed in one place (app/rank/rank_run.cpp, or a test), passed by reference.
struct TrainerWorld {
  kernels::Device& device;
  const kernels::KernelSet& kernels;
  nn::Backend& backend;
  comm::ProcessGroup& group;
  const data::Dataset& train_set;
  const data::Dataset& test_set;
  const data::Dataset* validation_set = nullptr;  ///< evaluated during training; null: the test set is
  MetricsSink& metrics;
  CheckpointSink* checkpoints = nullptr;       ///< null: this rank saves none
  RunRequests* requests = nullptr;             ///< null: this rank gets no requests
  StepHook* step_hook = nullptr;               ///< fault injection; null: nothing is called
  NewestCheckpoint newest_checkpoint = {};     ///< rank 0 only
  std::span<const FurtherDevice> others = {};  ///< devices besides `device` (--data-parallel)
  RunTrace* trace = nullptr;                   ///< null: nothing is traced
  DataHashes data = {};                        ///< of the data sets, for checkpoints; empty: not known
};

}  // namespace gradring::train
