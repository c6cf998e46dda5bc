// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/file_system.h"
#include "train/checkpoint/step_folder.h"

namespace gradring::train {

/// The links beside the checkpoints, to the newest and to that of the highest score.
constexpr const char* kLatestLink = "latest";
constexpr const char* kBestLink = "best";

/// What a link names; nothing if it is no link.
std::optional<std::filesystem::path> target_of(FileSystem& files, const std::filesystem::path& link);

/// Which checkpoints stay when another is saved.
struct Retention {
  int keep_last = 0;  ///< those of the highest steps; 0: all
  int keep_best = 1;  ///< beside them, those of the highest scores
};

/// A folder of checkpoints.
struct CheckpointEntry {
  std::filesystem::path folder;
  std::int64_t step = 0;
  std::optional<double> score;
  bool readable = true;  ///< whether its meta.json could be read and is valid
};

struct PassedOver {
  std::filesystem::path folder;
  FolderState state = FolderState::in_place;
  std::string why;
};

struct NewestValid {
  std::optional<CheckpointEntry> found;
  std::vector<PassedOver> passed_over;  ///< newer than what was found, the newest first
  bool removed_meanwhile = false;       ///< another process removed one while it was read
};

/// The checkpoints of a run, on a disk that may fill up, fail, or lose its power at any moment:
///
///   step-<N>/        one checkpoint, whole
///   latest, best     links to two of them
///   step-<N>.partial, .removing, .replaced, abandoned-step-<N>     see FolderState
///
/// Whatever happens during a save, the newest checkpoint that is whole is this one or the one before.
///
/// Threads   one at a time. Processes: one saves; others may read and prune at the same time. What another one removes first
///           is no error.
/// Example   tests/train/checkpoint/checkpoint_directory_test.cpp
class CheckpointDirectory {
 public:
  /// `files` must outlive it. The folder need not be there; the one above it must.
  CheckpointDirectory(FileSystem& files, std::filesystem::path root, Retention retention = {});

  /// Writes step-<N> aside, renames it, and lets `latest` and `best` follow; then removes what need not stay. What is on
  /// the disk when this returns survives a power cut. Blocks until then.
  ///
  /// Returns   what did not work after the checkpoint was safe (a link, a removal), one line each.
  /// Errors    FileError, and this checkpoint is not there; InvalidArgument as write_checkpoint.
  [[nodiscard]] std::vector<std::string> save(const Checkpoint& checkpoint);

  /// The checkpoints in place, the highest step first; not verified beyond their meta.json.
  ///
  /// Errors    FileError if the folder cannot be listed; a folder that is not there holds none.
  std::vector<CheckpointEntry> entries() const;

  /// The checkpoint of the highest step that verify_checkpoint finds valid, and what is wrong with those above it.
  ///
  /// Errors    as entries; FileError if one could not be read: whether it is valid is not known.
  NewestValid newest_valid() const;

  /// The checkpoints that `retention` does not keep; never what `latest` or `best` name, nor what is not readable.
  ///
  /// Errors    as entries.
  std::vector<CheckpointEntry> unwanted() const;

  /// A training resumes in place after `step`: checkpoints of later steps are another training's from now on. They are kept
  /// as abandoned-step-<N>, where nothing looks for checkpoints. `latest` and `best` name what is in place, also where a save
  /// was killed before it set them.
  ///
  /// Returns   what did not work with the links, one line each.
  /// Errors    FileError; some of the checkpoints may have been renamed.
  [[nodiscard]] std::vector<std::string> abandon_after(std::int64_t step);

  /// Removes `unwanted`, and an old checkpoint that was replaced, if one of its step or a higher one is in place.
  ///
  /// Returns   as save.
  std::vector<std::string> prune(const std::vector<CheckpointEntry>& unwanted);

  /// Removes every abandoned-step-<N>.
  ///
  /// Errors    FileError; some of them may have been removed.
  void remove_abandoned() { remove_leftovers({FolderState::abandoned}); }

 private:
  std::filesystem::path folder_of(std::int64_t step, FolderState state = FolderState::in_place) const;
  CheckpointEntry entry_of(const StepFolder& folder) const;
  std::optional<std::vector<std::string>> problems_of(const std::filesystem::path& folder) const;

  void make_root();
  void check_room(const Checkpoint& checkpoint);
  void write_aside(const Checkpoint& checkpoint);
  void move_into_place(std::int64_t step);
  void move_aside_after(std::int64_t step);
  void restore_replaced(std::int64_t step);
  void point(const char* link, const std::filesystem::path& folder);
  std::vector<CheckpointEntry> best_first() const;
  void point_to_first(const char* link, const std::vector<CheckpointEntry>& candidates);
  void remove(const std::vector<CheckpointEntry>& unwanted);
  void remove_tree(const std::filesystem::path& folder);
  void remove_leftovers(std::initializer_list<FolderState> states);
  void remove_replaced();

  FileSystem& files_;
  std::filesystem::path root_;
  Retention retention_;
};

}  // namespace gradring::train
