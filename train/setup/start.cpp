// SPDX-License-Identifier: Apache-2.0
#include "train/setup/start.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "train/checkpoint/error.h"
#include "train/checkpoint/step_folder.h"
#include "train/config/options.h"
#include "train/config/toml_text.h"
#include "train/report/environment_error.h"
#include "train/report/run_directory.h"
#include "train/setup/named_checkpoint.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSourceLine = "# Resumed from ";

bool was_finished(const StepFolder& folder) {
  return folder.state == FolderState::in_place || folder.state == FolderState::replaced;
}

/// Begins a run at step 0 only where it has saved nothing: a training that is lost is the user's to give up.
void check_nothing_is_lost(const Start& start, const fs::path& checkpoints, FileSystem& files) {
  if (std::ranges::none_of(list_step_folders(files, checkpoints), was_finished)) return;
  throw CheckpointError(checkpoints, fmt::format("holds no valid checkpoint ({})", fmt::join(start.remarks, "; ")),
                        "nothing was changed: restore a checkpoint, or start again at step 0 with --resume "
                        "auto-or-restart, which keeps the damaged ones as abandoned-step-N");
}

bool has_finished_checkpoint(FileSystem& files, const fs::path& run_dir) {
  return std::ranges::any_of(list_step_folders(files, checkpoints_of(run_dir)), was_finished);
}

/// Whether --resume `named` can have led to `source`: names the checkpoint, a link to one beside it, or their folder or
/// run.
bool names(FileSystem& files, const fs::path& named, const fs::path& source) {
  const fs::path wanted = fs::weakly_canonical(source), given = fs::weakly_canonical(named);
  if (given == wanted || given == wanted.parent_path() || checkpoints_of(given) == wanted.parent_path()) return true;
  const fs::path link = named.has_filename() ? named : named.parent_path();
  return target_of(files, link) && fs::weakly_canonical(link.parent_path()) == wanted.parent_path();
}

/// Whether --resume PATH repeats the start of the run in `run_dir`, which then resumes.
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
  }
  return start;
}

}  // namespace

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
  const auto table = parse_toml("source = " + text.substr(kSourceLine.size(), text.find('\n') - kSourceLine.size()));
  const auto source = table["source"].value<std::string>();
  return source && !source->empty() ? std::optional<fs::path>(*source) : std::nullopt;
} catch (const CheckpointError&) {  // a missing file, or a FIFO
  return std::nullopt;
} catch (const TomlError&) {
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

}  // namespace gradring::train
