// SPDX-License-Identifier: Apache-2.0
#include "train/setup/start.h"

#include <fmt/format.h>

#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/error.h"
#include "train/checkpoint/tensor_file.h"
#include "train/config/usage_error.h"
#include "train/report/environment_error.h"
#include "train/report/run_directory.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

bool is_checkpoint(FileSystem& files, const fs::path& folder) { return files.exists(folder / kMetaFile); }

/// The newest sound checkpoint of a run, if there is one.
std::optional<ResumePoint> newest_in(const fs::path& checkpoints, FileSystem& files, std::vector<std::string>& remarks) {
  const NewestValid newest = CheckpointDirectory(files, checkpoints).newest_valid();
  for (const PassedOver& passed : newest.passed_over)
    remarks.push_back(fmt::format("passed over {}: {}", passed.folder.string(), passed.why));
  if (!newest.found) return std::nullopt;
  return ResumePoint{.checkpoint = read_checkpoint(files, newest.found->folder), .from = newest.found->folder};
}

/// The folder of checkpoints that a person means by a run directory, or by the folder itself.
fs::path checkpoints_in(const fs::path& path, FileSystem& files) {
  const fs::path of_run = checkpoints_of(path);
  return files.exists(of_run) ? of_run : path;
}

/// What --resume PATH names: a checkpoint, a folder of some, or a run directory.
ResumePoint named_checkpoint(const fs::path& path, FileSystem& files, std::vector<std::string>& remarks) {
  if (!files.exists(path)) throw CheckpointError(path, "is not there", "name a checkpoint or a run directory by --resume");
  if (is_checkpoint(files, path)) return {.checkpoint = read_checkpoint(files, path), .from = path};
  std::optional<ResumePoint> newest = newest_in(checkpoints_in(path, files), files, remarks);
  if (newest) return std::move(*newest);
  throw CheckpointError(path, "holds no sound checkpoint" + (remarks.empty() ? "" : " (" + remarks.front() + ")"),
                        "name another by --resume");
}

bool holds(const fs::path& folder, const fs::path& inner) {
  const fs::path relative = fs::weakly_canonical(inner).lexically_relative(fs::weakly_canonical(folder));
  return !relative.empty() && *relative.begin() != "..";
}

FirstWeights read_weights(const fs::path& path, FileSystem& files) {
  if (is_checkpoint(files, path)) return {.tensors = read_checkpoint(files, path).model, .from = path};
  return {.tensors = read_tensor_file(files, path), .from = path};
}

Start find(const TrainConfig& config, const fs::path& run_dir, FileSystem& files) {
  Start start;
  if (config.resume == "auto") {
    start.in_place = files.exists(run_dir);
    if (start.in_place) {
      check_is_run_dir(run_dir);
      start.resume = newest_in(checkpoints_of(run_dir), files, start.remarks);
    }
  } else if (config.resume != "none") {
    start.resume = named_checkpoint(config.resume, files, start.remarks);
    start.in_place = holds(run_dir, start.resume->from);
  }
  if (!start.in_place) check_new_run_dir(run_dir);
  if (!start.resume && !config.weights.empty()) start.weights = read_weights(config.weights, files);
  return start;
}

}  // namespace

Start find_start(const TrainConfig& config, const fs::path& run_dir, FileSystem& files) {
  try {
    return find(config, run_dir, files);
  } catch (const FileError& error) {
    throw EnvironmentError(std::string(error.what()) + "; look at the disk and at the folder's permissions");
  }
}

}  // namespace gradring::train
