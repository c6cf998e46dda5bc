// SPDX-License-Identifier: Apache-2.0
#include "train/setup/start.h"

#include "train/checkpoint/error.h"
#include "train/config/usage_error.h"
#include "train/report/environment_error.h"
#include "train/report/run_directory.h"
#include "train/setup/named_checkpoint.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

bool holds(const fs::path& folder, const fs::path& inner) {
  const fs::path relative = fs::weakly_canonical(inner).lexically_relative(fs::weakly_canonical(folder));
  return !relative.empty() && *relative.begin() != "..";
}

Start find(const TrainConfig& config, const std::optional<fs::path>& run_dir, FileSystem& files) {
  Start start;
  if (config.resume == "auto") {
    const RunDirState state = state_of(*run_dir);
    start.in_place = state == RunDirState::run || state == RunDirState::other;
    if (start.in_place) {
      check_is_run_dir(*run_dir);
      start.resume = newest_checkpoint(files, checkpoints_of(*run_dir), start.remarks);
    }
  } else if (config.resume != "none") {
    start.resume = named_checkpoint(files, config.resume, "--resume", start.remarks);
    start.in_place = run_dir && holds(*run_dir, start.resume->from);
  }
  if (run_dir && !start.in_place) check_new_run_dir(*run_dir);
  if (!start.resume && !config.weights.empty()) {
    NamedTensors named = named_tensors(files, config.weights, "--weights");
    start.weights = FirstWeights{.tensors = std::move(named.contents.model), .from = std::move(named.from)};
    start.remarks = std::move(named.remarks);
  }
  return start;
}

}  // namespace

Start find_start(const TrainConfig& config, const std::optional<fs::path>& run_dir, FileSystem& files) {
  try {
    return find(config, run_dir, files);
  } catch (const FileError& error) {
    throw EnvironmentError(std::string(error.what()) + "; look at the disk and at the folder's permissions");
  }
}

}  // namespace gradring::train
