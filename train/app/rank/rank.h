// SPDX-License-Identifier: Apache-2.0
// One rank of a training, as every command that trains begins: its devices, the other ranks, and what all agree on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "train/core/config/train_config.h"
#include "train/core/setup/agreement.h"
#include "train/core/setup/compute.h"
#include "train/core/setup/datasets.h"
#include "train/core/setup/rendezvous.h"
#include "train/core/setup/start.h"
#include "train/core/trainer/dataset_record.h"
#include "train/core/trainer/trainer.h"
#include "train/launch/workers/worker_environment.h"

namespace gradring::train {

/// A rank's devices and its connection. To be kept until its error is reported (KeptAlive): peers notice when the group
/// disappears, and their errors must not come first.
class Rank {
 public:
  /// Opens the devices: that of the rank, and with --data-parallel those besides it. While layers are planned, rank 0
  /// chooses for all, so no layer is planned before join().
  ///
  /// Errors    as make_compute, threads_of_rank, step_sizes and make_further_devices.
  Rank(const TrainConfig& config, const WorkerEnvironment& environment);
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  const Compute& compute() const { return compute_; }
  std::span<const FurtherDevice> further() const { return further_; }

  /// With --autotune, keeps what computed each layer in the training that is resumed, as the numerics depend on it; on
  /// rank 0, before layers are planned.
  ///
  /// Returns   a remark if that was on another card; else empty.
  std::string keep_plans(const Checkpoint& resumed);

  /// Connects the ranks. Collective.
  ///
  /// Errors    as make_group.
  comm::ProcessGroup& join(const TrainConfig& config, const WorkerEnvironment& environment);

 private:
  std::map<std::string, std::string> resumed_plans_;  // by layer
  Compute compute_;
  std::vector<Compute> others_;
  std::vector<FurtherDevice> further_;
  Ranks ranks_;  // its memory lies on the device
};

/// Checks what needs options, device and data, before anything of the training is allocated: options, the model, and on
/// a CPU that the host has the memory of all its ranks. Before the ranks join: no rank has allocated its own by then. A
/// dry run without --autotune also plans the layers of a GPU; a training plans them after its ranks have joined.
///
/// Errors    as memory_plan_spec, replica_model and plan_programs; DeviceError with the planned and the available bytes.
void check_plan(const TrainConfig& config, const Compute& compute, const data::Dataset& train_set,
                const data::Dataset& evaluated, const WorkerEnvironment& environment, bool is_dry_run = false);

/// What a rank finds on its own disk, and the others on theirs.
struct OwnFiles {
  DataHashes hashes{};                  ///< hashes_of()
  std::vector<Agreement> agreements{};  ///< same_data(); empty for a single rank
  std::int64_t newest_step = -1;        ///< of the checkpoints in --run-dir, where the run resumes from the newest
  std::string two_runs{};               ///< advice_for_two_runs()
};

/// Reads them; before ranks wait for each other.
OwnFiles own_files(const TrainConfig& config, const WorkerEnvironment& environment, const Datasets& sets);

/// Checks that all ranks train with the same options, code and data, and that rank 0 has the newest checkpoint.
/// Collective.
///
/// Returns   remarks.
/// Errors    ReplicaError that names the ranks and what differs.
std::vector<std::string> check_ranks_agree(comm::ProcessGroup& group, const TrainConfig& config, const Compute& compute,
                                           const OwnFiles& own);

/// Starts the trainer from rank 0's checkpoint, weights or seed. Collective. May add to the remarks of `start`.
///
/// Errors    as Trainer::resume and Trainer::begin_with.
void begin_training(Trainer& trainer, const TrainConfig& config, comm::ProcessGroup& group, Start& start);

// What the ranks compare.

/// Every option, from whatever source. Not compared: where a rank finds its data (same_data compares that) and its run
/// directory, name and tags of the run, which rank 0 writes, and the paths of files that rank 0 reads for all.
Agreement same_options(const TrainConfig& config);

/// The paths of --weights, --optimizer-state and --resume: rank 0 reads them, and sends the others what it has read. So
/// these files may be on its disk only, and a path that differs is a remark.
Agreement same_paths(const TrainConfig& config);

/// recorded_cpu_level(): replicas that round differently would diverge.
Agreement same_cpu_level(const std::string& level);

/// The number of samples of each data set, then their content: two agreements. Equal samples from two folders agree.
std::vector<Agreement> same_data(const TrainConfig& config, const Datasets& sets, const DataHashes& hashes);

/// Checks that no rank has a later checkpoint than rank 0, as on disks that are not shared, if rank 0 moved to another
/// node. `newest`: newest_step() in this rank's `run_dir`. Collective.
///
/// Errors    ReplicaError with both ranks and their steps; comm::CommError.
void check_no_later_checkpoint(comm::ProcessGroup& group, std::int64_t newest, const std::filesystem::path& run_dir);

}  // namespace gradring::train
