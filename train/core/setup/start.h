// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/core/config/train_config.h"
#include "train/core/trainer/trainer.h"
#include "train/records/checkpoint/file_system.h"

namespace gradring::train {

/// The newest valid checkpoint in a folder of checkpoints, if any. Each newer, invalid one becomes a remark. A run may
/// save and remove checkpoints at the same time.
///
/// Errors    FileError if one could not be read, so that its validity is unknown.
std::optional<ResumePoint> newest_checkpoint(FileSystem& files, const std::filesystem::path& checkpoints,
                                             std::vector<std::string>& remarks);

/// The checkpoint of the highest score in a folder of checkpoints, by their meta.json; nothing if none has a score. As
/// newest_checkpoint otherwise.
///
/// Errors    CheckpointError if it is damaged; FileError.
std::optional<ResumePoint> best_checkpoint(FileSystem& files, const std::filesystem::path& checkpoints);

/// The step of the newest finished checkpoint in a run directory, valid or not; below 0: none can be found.
std::int64_t newest_step(FileSystem& files, const std::filesystem::path& run_dir);

/// The folder of checkpoints of a run directory; any other path is returned as it is.
std::filesystem::path checkpoints_in(FileSystem& files, const std::filesystem::path& path);

bool is_checkpoint(FileSystem& files, const std::filesystem::path& folder);

/// The current target of a link such as `latest`, which a run may change while its files are read; any other path is
/// returned as it is.
std::filesystem::path followed(FileSystem& files, const std::filesystem::path& path);

/// Reads the checkpoint at `path`, or the newest valid one of a run directory or folder of checkpoints. `option` names
/// the path in messages.
///
/// Errors    CheckpointError if it is missing, empty or damaged; FileError if it could not be read.
ResumePoint named_checkpoint(FileSystem& files, const std::filesystem::path& path, std::string_view option,
                             std::vector<std::string>& remarks);

/// Tensors that an option names, and where they come from.
struct NamedTensors {
  Checkpoint contents;         ///< of a file: its tensors, as the model
  std::filesystem::path from;  ///< the checkpoint or the file
  bool is_file = false;
  std::vector<std::string> remarks;  ///< checkpoints that were skipped, and why
  std::string which = {};            ///< of several: "newest of runs/a", "best of runs/a"; empty: there was no choice
};

/// As named_checkpoint; also reads a file of tensors (read_tensor_file).
NamedTensors named_tensors(FileSystem& files, const std::filesystem::path& path, std::string_view option);

/// The same; but the checkpoint of a run directory, or folder of checkpoints, is the one with the best score, or the
/// newest with a remark if none has a score.
///
/// Errors    UsageError if `path` is neither; CheckpointError if the best one is damaged.
NamedTensors best_tensors(FileSystem& files, const std::filesystem::path& path, std::string_view option);

/// Replaces the weights by the averaged weights (--ema), under the same names. Buffers that are not
/// among them stay.
///
/// Errors    CheckpointError if there are none.
void take_averaged(NamedTensors& named);

/// Where a run begins. With neither checkpoint nor weights, weights are initialized at random.
struct Start {
  std::optional<ResumePoint> resume;
  std::optional<FirstWeights> weights;
  bool in_place = false;             ///< the run continues in an existing run directory
  std::vector<std::string> remarks;  ///< checkpoints that were skipped, and why
};

/// Whether the run in `run_dir` saved `checkpoint`.
bool is_own_checkpoint(const std::filesystem::path& run_dir, const std::filesystem::path& checkpoint);

/// The first line of config.resolved.toml in a run that starts from another run's checkpoint.
std::string source_line(const std::filesystem::path& checkpoint);

/// The checkpoint that source_line recorded in `run_dir`; empty if the run did not start from one.
///
/// Errors    FileError if config.resolved.toml could not be read.
std::optional<std::filesystem::path> recorded_source(FileSystem& files, const std::filesystem::path& run_dir);

/// Resolves --resume and --weights for a run in `run_dir` (empty: its name is generated, so it is new). Reads what they
/// name, and changes nothing.
///
/// A run that started from another run's checkpoint and has saved none itself resumes from that source: with auto, and
/// if --resume names the source again. `restarted`: a launcher repeats the same command; then --resume of the source
/// resumes from the run's own newest checkpoint, if it has one.
///
/// Errors    UsageError if the run directory must not exist, or is not one; CheckpointError if the named or recorded
///           checkpoint is missing or damaged, or, with auto, every checkpoint is; EnvironmentError if something could
///           not be read.
Start find_start(const TrainConfig& config, const std::optional<std::filesystem::path>& run_dir, FileSystem& files,
                 bool restarted = false);

/// The text of a model file that is missing, from the checkpoint that the run resumes: what resolve() left out.
///
/// Errors    as read_model_file, if there is no checkpoint of a model of that file; as check_model and read_checkpoint.
void take_saved_model(FileSystem& files, TrainConfig& config);

}  // namespace gradring::train
