// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/start.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "nn/models/toml_text.h"
#include "train/core/config/options.h"
#include "train/core/config/resolve.h"
#include "train/core/optim/optimizer.h"
#include "train/core/setup/run_directory.h"
#include "train/core/setup/run_settings.h"
#include "train/core/trainer/torch_optimizer_state.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/checkpoint_directory.h"
#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/tensor_file.h"
#include "train/records/checkpoint/torch_optimizer.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// How often a search starts again because a checkpoint was removed while it was read.
constexpr int kAttempts = 10;

/// nullopt if another process has removed it.
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

constexpr std::string_view kSourceLine = "# Resumed from ";

bool was_finished(const StepFolder& folder) {
  return folder.state == FolderState::in_place || folder.state == FolderState::replaced;
}

/// A run may begin at step 0 only if it has saved nothing: only the user may give up a training.
void check_nothing_is_lost(const Start& start, const fs::path& checkpoints, FileSystem& files) {
  if (std::ranges::none_of(list_step_folders(files, checkpoints), was_finished)) return;
  throw CheckpointError(checkpoints, fmt::format("holds no valid checkpoint ({})", fmt::join(start.remarks, "; ")),
                        "nothing was changed: restore a checkpoint, or start again at step 0 with --resume "
                        "auto-or-restart, which keeps the damaged ones as abandoned-step-N");
}

bool has_finished_checkpoint(FileSystem& files, const fs::path& run_dir) {
  return std::ranges::any_of(list_step_folders(files, checkpoints_of(run_dir)), was_finished);
}

/// Whether --resume `named` could have selected `source`: it is that checkpoint, a link in its folder,
/// that folder, or the run directory.
bool names(FileSystem& files, const fs::path& named, const fs::path& source) {
  const fs::path wanted = fs::weakly_canonical(source), given = fs::weakly_canonical(named);
  if (given == wanted || given == wanted.parent_path() || checkpoints_of(given) == wanted.parent_path()) return true;
  const fs::path link = named.has_filename() ? named : named.parent_path();
  return target_of(files, link) && fs::weakly_canonical(link.parent_path()) == wanted.parent_path();
}

/// Whether --resume PATH repeats the command that started the run in `run_dir`, which then resumes.
bool repeats_start(FileSystem& files, const fs::path& named, const fs::path& run_dir, bool restarted) {
  if (state_of(run_dir) != RunDirState::run) return false;
  const auto source = recorded_source(files, run_dir);
  return source && names(files, named, *source) && (restarted || !has_finished_checkpoint(files, run_dir));
}

ResumePoint resume_point_at_source(FileSystem& files, const fs::path& source, const fs::path& run_dir,
                                   std::vector<std::string>& remarks) {
  try {
    return named_checkpoint(files, source, "--resume", remarks);
  } catch (const NewerFormatError&) {
    throw;
  } catch (const CheckpointError& error) {
    throw CheckpointError(
        run_dir, fmt::format("has no valid checkpoint, and the run started from {}: {}", source.string(), error.what()),
        "restore that checkpoint, or start a new run in another --run-dir");
  }
}

/// The newest valid checkpoint of the run, or else the one it started from.
void resume_in_place(Start& start, const fs::path& run_dir, FileSystem& files, bool gives_up_damaged) {
  check_is_run_dir(run_dir);
  start.in_place = true;
  const fs::path checkpoints = checkpoints_of(run_dir);
  start.resume = newest_checkpoint(files, checkpoints, start.remarks);
  if (start.resume) return;
  if (!gives_up_damaged) check_nothing_is_lost(start, checkpoints, files);
  if (const auto source = recorded_source(files, run_dir))
    start.resume = resume_point_at_source(files, *source, run_dir, start.remarks);
}

void take_optimizer(Start& start, const TrainConfig& config, FileSystem& files) {
  start.weights->optimizer = read_torch_optimizer(files, config.optimizer_state);
  start.weights->optimizer_from = config.optimizer_state;
  const ParameterGroups groups = parameter_groups(nn::parameters_of(model_for(config)), config.optimizer);
  std::ranges::move(optimizer_differences(*start.weights->optimizer, groups.groups, config.learning_rate),
                    std::back_inserter(start.remarks));
}

Start find(const TrainConfig& config, const std::optional<fs::path>& run_dir, FileSystem& files, bool restarted) {
  Start start;
  if (resumes_automatically(config)) {
    const RunDirState state = state_of(*run_dir);
    if (state == RunDirState::run || state == RunDirState::other)
      resume_in_place(start, *run_dir, files, config.resume != "auto");
  } else if (config.resume != "none" && run_dir && repeats_start(files, config.resume, *run_dir, restarted)) {
    resume_in_place(start, *run_dir, files, false);
  } else if (config.resume != "none") {
    start.resume = named_checkpoint(files, config.resume, "--resume", start.remarks);
    start.in_place = run_dir && is_own_checkpoint(*run_dir, start.resume->from);
    if (start.in_place) check_is_run_dir(*run_dir);
  }
  if (run_dir && !start.in_place) check_new_run_dir(*run_dir);
  if (!start.resume && !config.weights.empty()) {
    NamedTensors named = named_tensors(files, config.weights, "--weights");
    start.weights = FirstWeights{.tensors = std::move(named.contents.model), .from = std::move(named.from)};
    start.remarks = std::move(named.remarks);
    if (!config.optimizer_state.empty()) take_optimizer(start, config, files);
  }
  return start;
}

}  // namespace

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

std::optional<ResumePoint> best_checkpoint(FileSystem& files, const fs::path& checkpoints) {
  const CheckpointDirectory directory(files, checkpoints);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const fs::path linked = followed(files, checkpoints / kBestLink);
    const std::vector<CheckpointEntry> all = directory.entries(), scored = directory.best_first();
    // What the link leads to may be the best even if its score cannot be read.
    const auto unread = std::ranges::find_if(
        all, [&](const CheckpointEntry& entry) { return entry.meta != MetaState::valid && entry.folder == linked; });
    if (unread == all.end() && scored.empty()) return std::nullopt;
    if (auto point = read_if_there(files, unread != all.end() ? unread->folder : scored.front().folder)) return point;
  }
  throw_removed(checkpoints);
}

std::int64_t newest_step(FileSystem& files, const fs::path& run_dir) try {
  const std::vector<StepFolder> folders = list_step_folders(files, checkpoints_of(run_dir));  // the newest first
  const auto newest = std::ranges::find_if(folders, was_finished);
  return newest == folders.end() ? -1 : newest->step;
} catch (const FileError&) {
  return -1;
}

fs::path checkpoints_in(FileSystem& files, const fs::path& path) {
  const fs::path of_run = checkpoints_of(path);
  return files.exists(of_run) ? of_run : path;
}

ResumePoint named_checkpoint(FileSystem& files, const fs::path& path, std::string_view option,
                             std::vector<std::string>& remarks) {
  if (!files.exists(path))
    throw CheckpointError(
        path, "does not exist",
        fmt::format("name a checkpoint or a run directory with {}{}", option, did_you_mean_run(path)));
  if (is_checkpoint(files, path)) {
    for (int attempt = 0; attempt < kAttempts; ++attempt)
      if (auto point = read_if_there(files, followed(files, path))) return std::move(*point);
    throw_removed(path);
  }
  std::optional<ResumePoint> newest = newest_checkpoint(files, checkpoints_in(files, path), remarks);
  if (newest) return std::move(*newest);
  throw CheckpointError(path, "holds no valid checkpoint" + (remarks.empty() ? "" : " (" + remarks.front() + ")"),
                        fmt::format("name another with {}{}", option, did_you_mean_run(path)));
}

NamedTensors named_tensors(FileSystem& files, const fs::path& path, std::string_view option) {
  std::error_code ignored;
  if (files.exists(path) && !fs::is_directory(path, ignored))
    return {.contents = {.model = read_tensor_file(files, path)}, .from = path, .is_file = true, .remarks = {}};
  NamedTensors named;
  ResumePoint found = named_checkpoint(files, path, option, named.remarks);
  if (!is_checkpoint(files, path)) named.which = fmt::format("newest of {}", path.string());
  named.contents = std::move(found.checkpoint);
  named.from = std::move(found.from);
  return named;
}

NamedTensors best_tensors(FileSystem& files, const fs::path& path, std::string_view option) {
  std::error_code ignored;
  if (files.exists(path) && (!fs::is_directory(path, ignored) || is_checkpoint(files, path)))
    throw UsageError(
        fmt::format("--best selects among the checkpoints of a run, but {} is not a run directory: leave "
                    "out --best",
                    path.string()));
  std::optional<ResumePoint> best = best_checkpoint(files, checkpoints_in(files, path));
  if (best)
    return {.contents = std::move(best->checkpoint),
            .from = std::move(best->from),
            .remarks = {},
            .which = fmt::format("best of {}", path.string())};
  NamedTensors named = named_tensors(files, path, option);
  named.remarks.push_back(fmt::format("no checkpoint in {} has a score, so the newest is used", path.string()));
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
  for (TensorRecord& tensor : named.contents.model)  // buffers
    if (std::ranges::find(averaged, tensor.name, &TensorRecord::name) == averaged.end())
      averaged.push_back(std::move(tensor));
  named.contents.model = std::move(averaged);
}

bool is_own_checkpoint(const fs::path& run_dir, const fs::path& checkpoint) {
  return fs::weakly_canonical(checkpoint).parent_path() == fs::weakly_canonical(checkpoints_of(run_dir));
}

std::string source_line(const fs::path& checkpoint) {
  return std::string(kSourceLine) + quoted(fs::absolute(checkpoint)) + "\n";
}

std::optional<fs::path> recorded_source(FileSystem& files, const fs::path& run_dir) try {
  constexpr std::uint64_t kLongest = 64 * 1024;
  const fs::path path = first_config(run_dir);
  const auto file = open_to_read(files, path);
  const std::string text = read_text(*file, path, 0, std::min(file->size(), kLongest));
  if (!text.starts_with(kSourceLine)) return std::nullopt;
  const auto table =
      nn::parse_toml("source = " + text.substr(kSourceLine.size(), text.find('\n') - kSourceLine.size()));
  const auto source = table["source"].value<std::string>();
  return source && !source->empty() ? std::optional<fs::path>(*source) : std::nullopt;
} catch (const CheckpointError&) {  // a missing file, or a FIFO
  return std::nullopt;
} catch (const nn::TomlError&) {
  return std::nullopt;
}

Start find_start(const TrainConfig& config, const std::optional<fs::path>& run_dir, FileSystem& files, bool restarted) {
  try {
    return find(config, run_dir, files, restarted);
  } catch (const FileError& error) {
    throw EnvironmentError(std::string(error.what()) +
                           "; nothing was changed: look at the disk and at the permissions, and resume again");
  }
}

void take_saved_model(FileSystem& files, TrainConfig& config) {
  if (!is_model_file(config.model) || !config.model_text.empty()) return;
  const fs::path path = resumes_automatically(config) ? *named_run_dir(config.run_dir) : fs::path(config.resume);
  std::vector<std::string> ignored;
  std::optional<ResumePoint> found;
  if (is_checkpoint(files, path))
    found = read_if_there(files, followed(files, path));
  else if (files.exists(path))
    found = newest_checkpoint(files, checkpoints_in(files, path), ignored);
  const nn::ModelText saved = found ? saved_model(found->checkpoint) : nn::ModelText("");
  const bool is_same = fs::path(saved.name).filename() == fs::path(config.model).filename();
  config.model_text = is_same && !saved.text.empty() ? saved.text : read_model_file(config.model);
  check_model(config);
}

}  // namespace gradring::train
