// SPDX-License-Identifier: Apache-2.0
#include "train/setup/named_checkpoint.h"

#include <fmt/format.h>

#include <string>

#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/error.h"
#include "train/checkpoint/tensor_file.h"
#include "train/optim/optimizer.h"
#include "train/report/run_directory.h"

namespace gradring::train {
namespace {

/// How often a checkpoint may be removed while it is read, before another is looked for.
constexpr int kAttempts = 10;

/// Nothing if another process has removed it.
std::optional<ResumePoint> read_if_there(FileSystem& files, const fs::path& folder) {
  try {
    return ResumePoint{.checkpoint = read_checkpoint(files, folder), .from = folder};
  } catch (const Error&) {
    if (files.exists(folder)) throw;
    return std::nullopt;
  }
}

[[noreturn]] void throw_removed(const fs::path& path) {
  throw CheckpointError(path, "was removed while it was read", "a run prunes its checkpoints: name another one");
}

}  // namespace

namespace fs = std::filesystem;

bool is_checkpoint(FileSystem& files, const fs::path& folder) { return files.exists(folder / kMetaFile); }

fs::path followed(FileSystem& files, const fs::path& path) {
  const fs::path link = path.has_filename() ? path : path.parent_path();
  const auto target = target_of(files, link);
  return target ? link.parent_path() / *target : path;
}

std::optional<ResumePoint> newest_checkpoint(FileSystem& files, const fs::path& checkpoints,
                                             std::vector<std::string>& remarks) {
  const CheckpointDirectory directory(files, checkpoints);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const NewestValid newest = directory.newest_valid();
    std::optional<ResumePoint> point;
    if (newest.found) point = read_if_there(files, newest.found->folder);
    if (!point && (newest.found || newest.removed_meanwhile)) continue;  // the run has saved a newer one
    for (const PassedOver& passed : newest.passed_over)
      remarks.push_back(fmt::format("passed over {}: {}", passed.folder.string(), passed.why));
    return point;
  }
  throw_removed(checkpoints);
}

fs::path checkpoints_in(FileSystem& files, const fs::path& path) {
  const fs::path of_run = checkpoints_of(path);
  return files.exists(of_run) ? of_run : path;
}

ResumePoint named_checkpoint(FileSystem& files, const fs::path& path, std::string_view option,
                             std::vector<std::string>& remarks) {
  if (!files.exists(path))
    throw CheckpointError(path, "is not there", fmt::format("name a checkpoint or a run directory by {}", option));
  if (is_checkpoint(files, path)) {
    for (int attempt = 0; attempt < kAttempts; ++attempt)
      if (auto point = read_if_there(files, followed(files, path))) return std::move(*point);
    throw_removed(path);
  }
  std::optional<ResumePoint> newest = newest_checkpoint(files, checkpoints_in(files, path), remarks);
  if (newest) return std::move(*newest);
  throw CheckpointError(path, "holds no valid checkpoint" + (remarks.empty() ? "" : " (" + remarks.front() + ")"),
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

void take_averaged(NamedTensors& named) {
  const std::string prefix = std::string(kEmaState) + ".";
  std::vector<TensorRecord> averaged;
  for (TensorRecord& tensor : named.contents.state) {
    if (!tensor.name.starts_with(prefix)) continue;
    averaged.push_back(tensor);
    averaged.back().name.erase(0, prefix.size());
  }
  if (averaged.empty())
    throw CheckpointError(named.from, "has no averaged weights",
                          "leave out --ema, or name a checkpoint of a training with --ema");
  named.contents.model = std::move(averaged);
}

}  // namespace gradring::train
