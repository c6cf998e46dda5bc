// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "train/records/checkpoint/checkpoint.h"
#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/step_folders.h"

namespace gradring::train {

/// Which checkpoints stay when another is saved.
struct Retention {
  int keep_last = 0;  ///< those of the highest steps; 0: all
  int keep_best = 1;  ///< also those of the highest scores
};

struct CheckpointEntry {
  std::filesystem::path folder;
  std::int64_t step = 0;
  std::optional<double> score;
  MetaState meta = MetaState::damaged;
};

struct PassedOver {
  std::filesystem::path folder;
  FolderState state = FolderState::in_place;
  std::string why;
};

struct NewestValid {
  std::optional<CheckpointEntry> found;
  std::vector<PassedOver> passed_over;  ///< newer than `found`, the newest first
  bool removed_meanwhile = false;       ///< another process removed a checkpoint while it was read
};

/// The checkpoints of a run, on a disk that may be full, fail, or lose its power at any moment:
///
///   step-<N>/        one complete checkpoint
///   latest, best     links to two of them; folders where a program has copied what they lead to (StepFolder)
///   step-<N>.partial, .removing, .replaced, abandoned-step-<N>     see FolderState
///
/// Whatever happens during a save, the newest complete checkpoint is this one or the one before.
///
/// Threads   one at a time. Processes: one saves; others may read and prune at the same time. It is no error if another
///           process removes a checkpoint first.
/// Example   tests/train/records/checkpoint/checkpoint_directory_test.cpp
class CheckpointDirectory {
 public:
  /// `files` must outlive it. `root` need not exist; its parent must.
  CheckpointDirectory(FileSystem& files, std::filesystem::path root, Retention retention = {});

  /// Writes step-<N>.partial, renames it to step-<N>, updates `latest` and `best`, and prunes. Blocks until everything
  /// is on disk.
  ///
  /// Returns   the errors after the checkpoint was on disk (of a link, a removal), one line each.
  /// Errors    FileError, and the checkpoint does not exist; InvalidArgument as write_checkpoint.
  [[nodiscard]] std::vector<std::string> save(const Checkpoint& checkpoint);

  /// The checkpoints in place, the highest step first. Verifies their meta.json only.
  ///
  /// Errors    FileError if the folder cannot be listed; a missing folder has none.
  std::vector<CheckpointEntry> entries() const;

  /// Those of entries() that have a score, the highest first; of equal ones the newest.
  std::vector<CheckpointEntry> best_first() const;

  /// The checkpoint of the highest step that verify_checkpoint finds valid, and the problems of those above it.
  ///
  /// Errors    as entries; FileError if one could not be read, NewerFormatError if a newer version of gradring wrote
  ///           one: it may be valid.
  NewestValid newest_valid() const;

  /// The checkpoints that `retention` does not keep; never the targets of `latest` and `best`, nor unreadable ones.
  ///
  /// Errors    as entries.
  std::vector<CheckpointEntry> unwanted() const;

  /// Prepares a resume in place after `step`: renames checkpoints of later steps to abandoned-step-<N> (or
  /// abandoned-step-<N>-2, ... if the name is taken), which no search for checkpoints considers, and sets `latest` and
  /// `best`, which a killed save may not have set.
  ///
  /// Returns   the errors of the links, one line each.
  /// Errors    FileError; some of the checkpoints may have been renamed.
  [[nodiscard]] std::vector<std::string> abandon_after(std::int64_t step);

  /// Removes `unwanted`, and a replaced checkpoint if one of its step or a higher one is in place. A link stays, and a
  /// folder into which a user has put other files.
  ///
  /// Returns   as save; what stays, one line each.
  std::vector<std::string> prune(const std::vector<CheckpointEntry>& unwanted);

  /// Removes every abandoned-step-<N>, abandoned-step-<N>-2, ... that prune would remove.
  ///
  /// Returns   what stays, one line each.
  /// Errors    FileError; some of them may have been removed.
  std::vector<std::string> remove_abandoned();

 private:
  std::filesystem::path folder_of(std::int64_t step, FolderState state = FolderState::in_place, int number = 1) const;
  CheckpointEntry entry_of(const StepFolder& folder) const;
  std::optional<std::vector<std::string>> problems_of(const std::filesystem::path& folder) const;
  void throw_if_newer_format(const std::filesystem::path& folder) const;

  void check_free_space(const Checkpoint& checkpoint);
  void write_partial(const Checkpoint& checkpoint);
  void move_into_place(std::int64_t step);
  void rename_later_to_abandoned(std::int64_t step);
  void restore_replaced(std::int64_t step);
  void resolve_copies();
  std::filesystem::path new_name_of(const StepFolder& copy) const;
  std::filesystem::path free_abandoned_name(std::int64_t step) const;
  void set_link(const char* link, const std::filesystem::path& folder);
  void set_link_to_first(const char* link, const std::vector<CheckpointEntry>& candidates);
  void remove(const std::vector<CheckpointEntry>& unwanted);
  void remove_tree(const std::filesystem::path& folder);
  void remove_leftovers(std::initializer_list<FolderState> states);
  void remove_replaced();

  FileSystem& files_;
  std::filesystem::path root_;
  Retention retention_;
};

}  // namespace gradring::train
