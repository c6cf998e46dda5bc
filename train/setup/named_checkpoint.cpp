// SPDX-License-Identifier: Apache-2.0
#include "train/setup/named_checkpoint.h"

#include <fmt/format.h>

#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/error.h"
#include "train/checkpoint/tensor_file.h"
#include "train/report/run_directory.h"

namespace gradring::train {

namespace fs = std::filesystem;

bool is_checkpoint(FileSystem& files, const fs::path& folder) { return files.exists(folder / kMetaFile); }

std::optional<ResumePoint> newest_checkpoint(FileSystem& files, const fs::path& checkpoints,
                                             std::vector<std::string>& remarks) {
  const NewestValid newest = CheckpointDirectory(files, checkpoints).newest_valid();
  for (const PassedOver& passed : newest.passed_over)
    remarks.push_back(fmt::format("passed over {}: {}", passed.folder.string(), passed.why));
  if (!newest.found) return std::nullopt;
  return ResumePoint{.checkpoint = read_checkpoint(files, newest.found->folder), .from = newest.found->folder};
}

fs::path checkpoints_in(FileSystem& files, const fs::path& path) {
  const fs::path of_run = checkpoints_of(path);
  return files.exists(of_run) ? of_run : path;
}

ResumePoint named_checkpoint(FileSystem& files, const fs::path& path, std::string_view option,
                             std::vector<std::string>& remarks) {
  if (!files.exists(path))
    throw CheckpointError(path, "is not there", fmt::format("name a checkpoint or a run directory by {}", option));
  if (is_checkpoint(files, path)) return {.checkpoint = read_checkpoint(files, path), .from = path};
  std::optional<ResumePoint> newest = newest_checkpoint(files, checkpoints_in(files, path), remarks);
  if (newest) return std::move(*newest);
  throw CheckpointError(path, "holds no sound checkpoint" + (remarks.empty() ? "" : " (" + remarks.front() + ")"),
                        fmt::format("name another by {}", option));
}

NamedTensors named_tensors(FileSystem& files, const fs::path& path, std::string_view option) {
  std::error_code ignored;
  if (files.exists(path) && !fs::is_directory(path, ignored))
    return {.contents = {.model = read_tensor_file(files, path)}, .from = path, .is_file = true, .remarks = {}};
  NamedTensors named;
  ResumePoint found = named_checkpoint(files, path, option, named.remarks);
  named.contents = std::move(found.checkpoint);
  named.from = std::move(found.from);
  return named;
}

}  // namespace gradring::train
