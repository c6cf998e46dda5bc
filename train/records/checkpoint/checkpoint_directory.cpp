// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/checkpoint_directory.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <numeric>
#include <ranges>
#include <set>
#include <utility>

#include "train/records/checkpoint/checkpoint.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// Runs `act`, whose failure does not matter to the caller; appends its error to `problems`.
void try_to(std::vector<std::string>& problems, const std::function<void()>& act) {
  try {
    act();
  } catch (const FileError& error) {
    problems.emplace_back(error.what());
  }
}

/// Runs `act`; ignores that another process removed the file or folder first.
void unless_removed(const std::function<void()>& act) {
  try {
    act();
  } catch (const FileError& error) {
    if (error.code() != ENOENT) throw;
  }
}

bool is_link(FileSystem& files, const fs::path& path) {
  try {
    files.read_link(path);
    return true;
  } catch (const FileError& error) {
    if (error.code() == EINVAL || error.code() == ENOENT) return false;
    throw;
  }
}

/// Whether a checkpoint may be removed. Otherwise it is left to the user, and `problems` says why: it is a link, or holds
/// other files than those of a save.
bool is_removable(FileSystem& files, const fs::path& folder, std::vector<std::string>& problems) {
  std::string reason;
  if (is_link(files, folder))
    reason = folder.string() + " is a symbolic link and was not removed; remove it yourself";
  else
    unless_removed([&] {
      for (const std::string& name : files.list(folder))
        if (name != kModelFile && name != kStateFile && name != kMetaFile)
          reason = folder.string() + " holds " + name +
                   ", which is no part of a checkpoint, and was not removed; move that elsewhere, or remove both";
    });
  if (!reason.empty()) problems.push_back(reason);
  return reason.empty();
}

/// Whether two folders have the same checkpoint, and that in `folder` is valid.
bool holds_same(FileSystem& files, const fs::path& folder, const fs::path& copy) try {
  const CheckpointMeta one = read_meta(files, folder), other = read_meta(files, copy);
  return one.model == other.model && one.state == other.state && verify_checkpoint(files, folder).empty();
} catch (const Error&) {
  return false;
}

}  // namespace

CheckpointDirectory::CheckpointDirectory(FileSystem& files, fs::path root, Retention retention)
    : files_(files), root_(std::move(root)), retention_(retention) {}

std::vector<std::string> CheckpointDirectory::save(const Checkpoint& checkpoint) {
  check(checkpoint.step >= 0,
        "the step of a checkpoint is " + std::to_string(checkpoint.step) + ", expected 0 or more");
  std::vector<std::string> problems;
  if (!files_.exists(root_)) {
    files_.make_folder(root_);
    files_.sync_folder(root_.has_parent_path() ? root_.parent_path() : ".");
  }
  try_to(problems, [&] {
    remove_leftovers({FolderState::partial, FolderState::removing});
    resolve_copies();
  });
  write_partial(checkpoint);
  move_into_place(checkpoint.step);
  try_to(problems, [&] { set_link(kLatestLink, folder_of(checkpoint.step)); });
  try_to(problems, [&] {
    if (const auto best = best_first(); retention_.keep_best > 0 && !best.empty())
      set_link(kBestLink, best.front().folder);
  });
  try_to(problems, [&] {
    for (std::string& problem : prune(unwanted())) problems.push_back(std::move(problem));
  });
  return problems;
}

/// Does not begin a save that cannot fit: a full disk would also fail other writers, such as metrics.jsonl.
void CheckpointDirectory::check_free_space(const Checkpoint& checkpoint) {
  constexpr std::uint64_t kHeaderBytes = 64 * 1024;
  const auto add = [](std::uint64_t sum, const TensorRecord& tensor) { return sum + tensor.bytes.size(); };
  std::uint64_t needed = std::accumulate(checkpoint.model.begin(), checkpoint.model.end(), kHeaderBytes, add);
  needed = std::accumulate(checkpoint.state.begin(), checkpoint.state.end(), needed, add);
  const std::uint64_t free = files_.free_bytes(root_);
  if (free < needed)
    throw FileError("write " + std::to_string(needed) + " bytes (" + std::to_string(free) + " are free) to", root_,
                    ENOSPC);
}

void CheckpointDirectory::write_partial(const Checkpoint& checkpoint) {
  check_free_space(checkpoint);
  const fs::path partial = folder_of(checkpoint.step, FolderState::partial);
  files_.make_folder(partial);
  try {
    write_checkpoint(files_, partial, checkpoint);
  } catch (...) {
    try {
      remove_tree(partial);  // frees space on a full disk
    } catch (...) {          // the first error is the one to report
    }
    throw;
  }
}

/// If the step exists, renames it first, so that one of the two is always complete.
void CheckpointDirectory::move_into_place(std::int64_t step) {
  const fs::path folder = folder_of(step);
  if (files_.exists(folder)) {
    remove_leftovers({FolderState::replaced});
    files_.rename(folder, folder_of(step, FolderState::replaced));
  }
  files_.rename(folder_of(step, FolderState::partial), folder);
  files_.sync_folder(root_);
}

/// Makes way for links that were copied as folders.
void CheckpointDirectory::resolve_copies() {
  for (const char* link : {kLatestLink, kBestLink}) {
    const std::optional<StepFolder> copy = copied_link(files_, root_, link);
    if (!copy) continue;
    remove_leftovers({FolderState::removing});
    files_.rename(copy->path, new_name_of(*copy));
    files_.sync_folder(root_);
    remove_leftovers({FolderState::removing});
  }
}

/// A copy is removed if another folder has its checkpoint. Otherwise it becomes step-<N>, or is abandoned if the run has
/// another one of that step.
fs::path CheckpointDirectory::new_name_of(const StepFolder& copy) const {
  bool has_other = false;
  for (const StepFolder& folder : list_step_folders(files_, root_)) {
    if (folder.step != copy.step || folder.path == copy.path || !is_finished(folder.state)) continue;
    if (holds_same(files_, folder.path, copy.path)) return folder_of(copy.step, FolderState::removing);
    has_other = true;
  }
  return has_other ? free_abandoned_name(copy.step) : folder_of(copy.step);
}

fs::path CheckpointDirectory::free_abandoned_name(std::int64_t step) const {
  int number = 1;
  while (files_.exists(folder_of(step, FolderState::abandoned, number))) ++number;
  return folder_of(step, FolderState::abandoned, number);
}

/// Creates a new link and renames it over the old one, so that there is always one.
void CheckpointDirectory::set_link(const char* link, const fs::path& folder) {
  const fs::path aside = root_ / (std::string(link) + ".partial");
  if (files_.exists(aside)) files_.remove_file(aside);
  files_.make_link(folder.filename(), aside);
  files_.rename(aside, root_ / link);
  files_.sync_folder(root_);
}

std::vector<std::string> CheckpointDirectory::abandon_after(std::int64_t step) {
  resolve_copies();
  restore_replaced(step);
  rename_later_to_abandoned(step);
  std::vector<std::string> problems;
  try_to(problems, [&] { set_link_to_first(kLatestLink, entries()); });
  try_to(problems, [&] {
    if (retention_.keep_best > 0 || target_of(files_, root_ / kBestLink)) set_link_to_first(kBestLink, best_first());
  });
  return problems;
}

/// Of step-<N> and step-<N>.replaced, keeps the first. Gives each abandoned checkpoint a free name.
void CheckpointDirectory::rename_later_to_abandoned(std::int64_t step) {
  std::vector<StepFolder> later = list_step_folders(files_, root_);
  std::erase_if(later, [step](const StepFolder& folder) {
    return folder.step <= step || (folder.state != FolderState::in_place && folder.state != FolderState::replaced);
  });
  if (later.empty()) return;
  for (const StepFolder& folder : later | std::views::reverse) {
    if (folder.state == FolderState::replaced && files_.exists(folder_of(folder.step))) {
      remove_tree(folder.path);
      continue;
    }
    files_.rename(folder.path, free_abandoned_name(folder.step));
  }
  files_.sync_folder(root_);
}

/// A save that was killed between its two renames left only this one.
void CheckpointDirectory::restore_replaced(std::int64_t step) {
  const fs::path aside = folder_of(step, FolderState::replaced);
  if (files_.exists(folder_of(step)) || !files_.exists(aside)) return;
  files_.rename(aside, folder_of(step));
  files_.sync_folder(root_);
}

void CheckpointDirectory::set_link_to_first(const char* link, const std::vector<CheckpointEntry>& candidates) {
  const std::optional<fs::path> target = target_of(files_, root_ / link);
  if (!candidates.empty()) {
    const fs::path& first = candidates.front().folder;
    if (target != first.filename()) set_link(link, first);
  } else if (target && !files_.exists(root_ / *target)) {
    files_.remove_file(root_ / link);
    files_.sync_folder(root_);
  }
}

std::vector<CheckpointEntry> CheckpointDirectory::unwanted() const {
  if (retention_.keep_last <= 0) return {};
  std::set<fs::path> kept;
  const auto keep = [&](const std::vector<CheckpointEntry>& list, int count) {
    for (const CheckpointEntry& entry : list)
      if (count-- > 0) kept.insert(entry.folder);
  };
  std::vector<CheckpointEntry> all = entries();
  std::erase_if(all, [](const CheckpointEntry& entry) { return entry.meta != MetaState::valid; });
  keep(all, retention_.keep_last);
  keep(best_first(), retention_.keep_best);
  for (const char* link : {kLatestLink, kBestLink})
    if (const auto target = target_of(files_, root_ / link)) kept.insert(root_ / *target);
  std::erase_if(all, [&](const CheckpointEntry& entry) { return kept.contains(entry.folder); });
  return all;
}

std::vector<std::string> CheckpointDirectory::prune(const std::vector<CheckpointEntry>& unwanted) {
  std::vector<std::string> problems;
  try_to(problems, [&] { remove_replaced(); });
  try_to(problems, [&] {
    std::vector<CheckpointEntry> folders = unwanted;
    std::erase_if(folders, [&](const CheckpointEntry& entry) { return !is_removable(files_, entry.folder, problems); });
    remove(folders);
  });
  return problems;
}

std::vector<std::string> CheckpointDirectory::remove_abandoned() {
  std::vector<std::string> problems;
  for (const StepFolder& folder : list_step_folders(files_, root_))
    if (folder.state == FolderState::abandoned && is_removable(files_, folder.path, problems)) remove_tree(folder.path);
  return problems;
}

/// Renames them all before it removes files, so that no power cut restores a checkpoint without its files.
void CheckpointDirectory::remove(const std::vector<CheckpointEntry>& unwanted) {
  if (unwanted.empty()) return;
  for (const CheckpointEntry& entry : unwanted)
    unless_removed([&] { files_.rename(entry.folder, folder_of(entry.step, FolderState::removing)); });
  files_.sync_folder(root_);
  remove_leftovers({FolderState::removing});
}

std::vector<CheckpointEntry> CheckpointDirectory::best_first() const {
  std::vector<CheckpointEntry> best = entries();
  std::erase_if(best, [](const CheckpointEntry& entry) { return !entry.score.has_value(); });
  std::ranges::sort(best, std::greater(),
                    [](const CheckpointEntry& entry) { return std::pair(*entry.score, entry.step); });
  return best;
}

std::vector<CheckpointEntry> CheckpointDirectory::entries() const {
  std::vector<CheckpointEntry> found;
  for (const StepFolder& folder : list_step_folders(files_, root_))
    if (folder.state == FolderState::in_place) found.push_back(entry_of(folder));
  return found;
}

NewestValid CheckpointDirectory::newest_valid() const {
  NewestValid newest;
  for (const StepFolder& folder : list_step_folders(files_, root_)) {
    if (folder.state == FolderState::removing || folder.state == FolderState::abandoned) continue;
    if (folder.state == FolderState::partial) {
      newest.passed_over.push_back({folder.path, folder.state, "was never finished"});
      continue;
    }
    const auto problems = problems_of(folder.path);
    if (!problems) {
      newest.removed_meanwhile = true;
    } else if (problems->empty()) {
      newest.found = entry_of(folder);
      break;
    } else {
      throw_if_newer_format(folder.path);
      newest.passed_over.push_back({folder.path, folder.state, problems->front()});
    }
  }
  return newest;
}

/// Empty if another process removed the checkpoint.
std::optional<std::vector<std::string>> CheckpointDirectory::problems_of(const fs::path& folder) const {
  try {
    std::vector<std::string> problems = verify_checkpoint(files_, folder);
    if (problems.empty() || files_.exists(folder)) return problems;
  } catch (const FileError&) {
    if (files_.exists(folder)) throw;
  }
  return std::nullopt;
}

/// Such a checkpoint may be valid: a search must not pass it over.
void CheckpointDirectory::throw_if_newer_format(const fs::path& folder) const {
  try {
    read_meta(files_, folder);
  } catch (const NewerFormatError&) {
    throw;
  } catch (const CheckpointError&) {  // damage, which verify_checkpoint has reported
  }
}

CheckpointEntry CheckpointDirectory::entry_of(const StepFolder& folder) const {
  CheckpointEntry entry{.folder = folder.path, .step = folder.step, .score = std::nullopt};
  entry.meta = read_score(files_, folder.path, entry.score);
  return entry;
}

fs::path CheckpointDirectory::folder_of(std::int64_t step, FolderState state, int number) const {
  return root_ / step_folder_name(step, state, number);
}

/// Does not follow links.
void CheckpointDirectory::remove_tree(const fs::path& folder) {
  unless_removed([&] {
    if (is_link(files_, folder)) return files_.remove_file(folder);
    for (const std::string& name : files_.list(folder)) unless_removed([&] { files_.remove_file(folder / name); });
    files_.remove_folder(folder);
  });
}

/// Keeps one without a checkpoint of its step or a higher one in place: it is the newest.
void CheckpointDirectory::remove_replaced() {
  bool is_superseded = false;
  for (const StepFolder& folder : list_step_folders(files_, root_)) {
    is_superseded = is_superseded || folder.state == FolderState::in_place;
    if (is_superseded && folder.state == FolderState::replaced) remove_tree(folder.path);
  }
}

void CheckpointDirectory::remove_leftovers(std::initializer_list<FolderState> states) {
  for (const StepFolder& folder : list_step_folders(files_, root_))
    if (std::ranges::find(states, folder.state) != states.end()) remove_tree(folder.path);
}

}  // namespace gradring::train
