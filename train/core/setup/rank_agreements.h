// SPDX-License-Identifier: Apache-2.0
// What the ranks of a training must agree on before it starts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "train/core/config/train_config.h"
#include "train/core/setup/agreement.h"
#include "train/core/setup/datasets.h"

namespace gradring::train {

/// Every option, from whatever source. Not compared: where a rank finds its data (same_data compares that) and its run
/// directory, and the paths of files that rank 0 reads for all.
Agreement same_options(const TrainConfig& config);

/// The paths of --weights, --optimizer-state and --resume: rank 0 reads them, and sends the others what it has read. So
/// these files may be on its disk only, and a path that differs is a remark.
Agreement same_paths(const TrainConfig& config);

/// recorded_cpu_level(): replicas that round differently would diverge.
Agreement same_cpu_level(const std::string& level);

/// The number of samples of each data set, then their content: two agreements. Equal samples from two folders agree.
///
/// Cost      as data::content_hash of each.
std::vector<Agreement> same_data(const TrainConfig& config, const Datasets& sets);

/// Checks that no rank has a later checkpoint than rank 0, as on disks that are not shared, if rank 0 moved to another
/// node. `newest`: newest_step() in this rank's `run_dir`. Collective.
///
/// Errors    ReplicaError with both ranks and their steps; comm::CommError.
void check_no_later_checkpoint(comm::ProcessGroup& group, std::int64_t newest, const std::filesystem::path& run_dir);

}  // namespace gradring::train
