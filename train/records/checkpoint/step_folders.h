// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/records/checkpoint/file_system.h"

namespace gradring::train {

/// The state of a checkpoint, which the name of its folder tells.
enum class FolderState {
  in_place,   ///< step-<N>
  partial,    ///< step-<N>.partial: being written, or interrupted
  removing,   ///< step-<N>.removing
  replaced,   ///< step-<N>.replaced: the old one, while a new step-<N> takes its place
  abandoned,  ///< abandoned-step-<N>, abandoned-step-<N>-2, ...: left behind by resumes from an earlier step
};

/// Neither partial nor removing: the folder may hold a complete checkpoint.
bool is_finished(FolderState state);

struct StepFolder {
  std::int64_t step = 0;
  FolderState state = FolderState::in_place;
  int number = 1;  ///< 2 for abandoned-step-<N>-2; otherwise 1
  std::filesystem::path path;
};

/// "step-120", "step-120.partial", ...; "abandoned-step-120-2" for the second abandoned checkpoint of a step.
std::string step_folder_name(std::int64_t step, FolderState state = FolderState::in_place, int number = 1);

/// Parses the last name of a path. Empty if it is not a name of step_folder_name: also for step-007.
std::optional<StepFolder> step_folder_at(const std::filesystem::path& path);

/// The folders of checkpoints in `root`: the highest step first, those of one step in the order of FolderState
/// and number. With a copied link (see copied_link) if it holds the only checkpoint of its step.
///
/// Errors    FileError if `root` cannot be listed; a missing `root` has none.
std::vector<StepFolder> list_step_folders(FileSystem& files, const std::filesystem::path& root);

/// The links beside the checkpoints, to the newest and to that of the highest score.
constexpr const char* kLatestLink = "latest";
constexpr const char* kBestLink = "best";

/// The checkpoint in root/`link` where that is a folder: programs that follow links (cp -rL, object stores) copy one.
/// Such a copy does not change when the run saves, so the step in its meta.json counts and not its name. Empty if it is
/// a link, or no readable checkpoint.
std::optional<StepFolder> copied_link(FileSystem& files, const std::filesystem::path& root, const char* link);

/// The target of a link; empty if `link` cannot be read as one.
std::optional<std::filesystem::path> target_of(FileSystem& files, const std::filesystem::path& link);

enum class MetaState {
  valid,
  damaged,
  newer_format,  ///< a newer version of gradring wrote it
  unreadable,    ///< a system error: it may be valid
};

/// Reads the score in the meta.json of a checkpoint. verify_checkpoint tells why one is damaged.
MetaState read_score(FileSystem& files, const std::filesystem::path& folder, std::optional<double>& score);

/// What `gradring ckpt ls` shows of a checkpoint: the folder and its meta.json, which alone is verified.
struct ListedCheckpoint {
  StepFolder folder;
  std::optional<double> score;
  std::uint64_t bytes = 0;  ///< of the files that can be opened
  MetaState meta = MetaState::damaged;
  bool is_latest = false, is_best = false;  ///< by the steps and scores in meta.json
};

/// As list_step_folders. A run may save and remove checkpoints at the same time.
std::vector<ListedCheckpoint> list_checkpoints(FileSystem& files, const std::filesystem::path& root);

}  // namespace gradring::train
