// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/app/commands/commands.h"
#include "train/core/setup/run_directory.h"
#include "train/core/setup/run_lock.h"
#include "train/core/setup/start.h"
#include "train/core/trainer/training_state.h"
#include "train/options/exit_code.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/checkpoint_directory.h"
#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/tensor_file.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The folder of checkpoints of a run directory, or the folder itself.
///
/// Errors    CheckpointError if it holds none.
fs::path checkpoints_of_run(FileSystem& files, const fs::path& run) {
  const std::string advice = "name a run directory, or the folder of its checkpoints" + did_you_mean_run(run);
  std::error_code ignored;
  if (!fs::is_directory(run, ignored))
    throw CheckpointError(run, files.exists(run) ? "is not a folder" : "does not exist", advice);
  fs::path root = checkpoints_in(files, run);
  if (list_step_folders(files, root).empty()) throw CheckpointError(run, "holds no checkpoints", advice);
  return root;
}

/// State of a checkpoint folder; `is_active`: whether its run is in progress.
std::string state_text(FolderState state, bool is_active) {
  switch (state) {
    case FolderState::in_place: return "in place";
    case FolderState::partial: return is_active ? "being saved" : "never finished";
    case FolderState::removing: return is_active ? "being removed" : "half removed";
    case FolderState::replaced: return is_active ? "being replaced" : "replaced";
    case FolderState::abandoned: return "abandoned";
  }
  return {};
}

/// Whether the run whose checkpoints are in `root` is in progress.
bool is_run_active(const fs::path& root) {
  const fs::path folder = (fs::absolute(root) / "").lexically_normal();  // with a slash behind
  return is_locked(folder.parent_path().parent_path());
}

struct LsOptions {
  bool json = false;
};

CommandLine command_line(LsOptions& options) {
  return {.command = "gradring ckpt ls",
          .purpose = "checkpoints of a run, the newest first",
          .usage = {"gradring ckpt ls RUN"},
          .options = {json_switch(options.json)},
          .takes_words = true,
          .notes =
              "RUN is a run directory or its folder checkpoints/. The run may be in progress: checkpoints that are "
              "being saved or removed are marked. gradring ckpt verify explains DAMAGED, UNREADABLE and NEWER FORMAT."};
}

/// Modification time of a folder; nothing if it cannot be read, as for a dangling link.
std::optional<std::tm> date_of(const fs::path& folder) {
  std::error_code error;
  const auto changed = std::chrono::file_clock::to_sys(fs::last_write_time(folder, error));
  if (error) return std::nullopt;
  return fmt::gmtime(
      std::chrono::system_clock::to_time_t(std::chrono::time_point_cast<std::chrono::system_clock::duration>(changed)));
}

std::string state_of(const ListedCheckpoint& listed, bool is_active) {
  if (listed.folder.state != FolderState::in_place) return state_text(listed.folder.state, is_active);
  switch (listed.meta) {
    case MetaState::valid: return "readable";
    case MetaState::damaged: return "DAMAGED";
    case MetaState::newer_format: return "NEWER FORMAT";
    case MetaState::unreadable: return "UNREADABLE";
  }
  return {};
}

std::string marks_of(const ListedCheckpoint& listed) {
  if (listed.is_latest && listed.is_best) return "latest, best";
  return listed.is_latest ? "latest" : listed.is_best ? "best" : "";
}

void print(const std::vector<ListedCheckpoint>& all, bool is_active) {
  print_text("{:>10} {:>10} {:>12}  {:<19}  {:<14}  {}\n", "step", "score", "bytes", "date (UTC)", "state", "marks");
  for (const ListedCheckpoint& listed : all) {
    const std::string score = listed.score ? fmt::format("{:.6f}", *listed.score) : "-";
    const auto changed = date_of(listed.folder.path);
    const std::string date = changed ? fmt::format("{:%Y-%m-%d %H:%M:%S}", *changed) : "-";
    const std::string line = fmt::format("{:>10} {:>10} {:>12}  {:<19}  {:<14}  {}", listed.folder.step, score,
                                         listed.bytes, date, state_of(listed, is_active), marks_of(listed));
    print_text("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

Json to_json(const ListedCheckpoint& listed, bool is_active) {
  Json json = {{"path", listed.folder.path.string()}, {"step", listed.folder.step}};
  json["score"] = listed.score ? Json(*listed.score) : Json();
  json["bytes"] = listed.bytes;
  const auto changed = date_of(listed.folder.path);
  json["date"] = changed ? Json(fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", *changed)) : nullptr;
  json["state"] = state_of(listed, is_active);
  json["latest"] = listed.is_latest;
  json["best"] = listed.is_best;
  return json;
}

void run(const LsOptions& options, const Words& words) {
  PosixFileSystem files;
  const auto root = checkpoints_of_run(files, only_word(words, "gradring ckpt ls RUN"));
  const bool in_use = is_run_active(root);
  const auto all = list_checkpoints(files, root);
  if (!options.json) {
    print(all, in_use);
    return;
  }
  Json list = Json::array();
  for (const ListedCheckpoint& listed : all) list.push_back(to_json(listed, in_use));
  print_json(list);
}

struct VerifyCheckpointOptions {
  bool json = false;
};

CommandLine command_line(VerifyCheckpointOptions& options) {
  return {.command = "gradring ckpt verify",
          .purpose = "comparison of checkpoints with the hashes that were saved, and of their counters with each other",
          .usage = {"gradring ckpt verify PATH..."},
          .options = {json_switch(options.json)},
          .takes_words = true,
          .notes =
              "PATH is a checkpoint, a run directory (all of its checkpoints) or a file of tensors. The run may be in "
              "progress: what is being saved or removed is skipped. Exit code 4: something is damaged; 3: something "
              "cannot be read."};
}

/// Result for one path; valid if all three are empty.
struct Verified {
  fs::path path;
  std::vector<std::string> problems = {};
  std::string read_error = {};  ///< why it could not be read
  std::string skipped = {};     ///< why it was not checked
};

/// `problems` reads the path and returns what is wrong.
Verified check(FileSystem& files, const fs::path& path, const std::function<std::vector<std::string>()>& problems) {
  Verified verified{.path = path};
  try {
    verified.problems = problems();
  } catch (const CheckpointError& error) {
    verified.problems = {error.what()};
  } catch (const FileError& error) {
    verified.read_error = error.what();
  }
  const bool is_valid = verified.problems.empty() && verified.read_error.empty();
  if (is_valid || files.exists(path)) return verified;
  return {.path = path, .skipped = "was removed while it was read"};
}

/// Damage, or else counters that no training can have.
std::vector<std::string> problems_of(FileSystem& files, const fs::path& folder) {
  std::vector<std::string> problems = verify_checkpoint(files, folder);
  if (!problems.empty()) return problems;
  const CheckpointMeta meta = read_meta(files, folder);
  if (meta.about->contains(kProgress))
    from_checkpoint({.step = meta.step, .model = {}, .state = {}, .about = meta.about, .score = meta.score}, folder);
  return {};
}

Verified check_checkpoint(FileSystem& files, const fs::path& folder) {
  return check(files, folder, [&] { return problems_of(files, folder); });
}

Verified check_file(FileSystem& files, const fs::path& path) {
  return check(files, path, [&] {
    read_tensor_file(files, path);
    return std::vector<std::string>();
  });
}

/// Checks each checkpoint and the links. Unfinished checkpoints are no fault, since they are never used.
std::vector<Verified> verify_run(FileSystem& files, const fs::path& run) {
  const fs::path root = checkpoints_of_run(files, run);
  const bool in_use = is_run_active(root);
  std::vector<Verified> all;
  for (const StepFolder& folder : list_step_folders(files, root))
    all.push_back(folder.state == FolderState::in_place
                      ? check_checkpoint(files, folder.path)
                      : Verified{.path = folder.path, .skipped = state_text(folder.state, in_use)});
  for (const char* link : {kLatestLink, kBestLink})
    if (files.exists(root / link) && !is_checkpoint(files, root / link))
      all.push_back({root / link, {(root / link).string() + ": leads to no checkpoint; remove it"}});
  return all;
}

std::vector<Verified> verify(FileSystem& files, const fs::path& path) {
  std::error_code ignored;
  if (!files.exists(path))
    return {{path, {path.string() + ": does not exist; name a checkpoint, a run directory or a file"}}};
  if (!fs::is_directory(path, ignored)) return {check_file(files, path)};
  if (is_checkpoint(files, path)) return {check_checkpoint(files, followed(files, path))};
  try {
    return verify_run(files, path);
  } catch (const CheckpointError& error) {
    return {{path, {error.what()}}};
  }
}

void print(const Verified& verified) {
  for (const std::string& problem : verified.problems) print_text("BAD  {}\n", problem);
  if (!verified.read_error.empty())
    print_text("ERR  {}\n", verified.read_error);
  else if (!verified.skipped.empty())
    print_text("skip {}: {}\n", verified.path.string(), verified.skipped);
  else if (verified.problems.empty())
    print_text("ok   {}\n", verified.path.string());
  flush_standard_output();
}

Json to_json(const Verified& verified) {
  Json json = {{"path", verified.path.string()}, {"problems", verified.problems}};
  if (!verified.read_error.empty()) json["error"] = verified.read_error;
  if (!verified.skipped.empty()) json["skipped"] = verified.skipped;
  return json;
}

void run(const VerifyCheckpointOptions& options, const Words& words) {
  if (words.empty()) throw UsageError("no path to verify: use gradring ckpt verify PATH...");
  PosixFileSystem files;
  Json list = Json::array();
  std::size_t checked = 0, bad = 0, unreadable = 0;
  for (const std::string& path : words)
    for (const Verified& verified : verify(files, path)) {
      checked += verified.skipped.empty();
      bad += !verified.problems.empty();
      unreadable += !verified.read_error.empty();
      list.push_back(to_json(verified));
      if (!options.json) print(verified);
    }
  if (options.json) print_json(list);
  const std::string what = words.front() + (words.size() > 1 ? ", ..." : "");
  if (bad > 0)
    throw CheckpointError(what, fmt::format("has {} corrupt of {} checked", bad, checked),
                          "resume from a valid one; --resume auto finds the newest");
  if (unreadable > 0)
    throw EnvironmentError(fmt::format("{}: {} of {} could not be read; look at the disk and at the permissions", what,
                                       unreadable, checked));
}

struct PruneOptions {
  Retention retention;
  bool abandoned = false;
  bool dry_run = false;
  bool json = false;
};

CommandLine command_line(PruneOptions& options) {
  return {
      .command = "gradring ckpt prune",
      .purpose = "removal of the checkpoints of a run that need not stay",
      .usage = {"gradring ckpt prune RUN --keep-last N [--keep-best K] [--abandoned] [--dry-run]",
                "gradring ckpt prune RUN --abandoned [--dry-run]"},
      .options = {count_option("keep-last", "number of newest checkpoints to keep", 1, options.retention.keep_last),
                  count_option("keep-best", "number of checkpoints with the highest scores to keep besides (default 1)",
                               0, options.retention.keep_best),
                  switch_option("abandoned", "also abandoned-step-N, left by a resume from an earlier step",
                                options.abandoned),
                  switch_option("dry-run", "list of what would be removed; nothing is removed", options.dry_run),
                  json_switch(options.json)},
      .takes_words = true,
      .notes =
          "The targets of the links `latest` and `best` stay, what is damaged or cannot be read (see gradring ckpt "
          "verify), and folders with files of your own. The run may be in progress."};
}

/// A damaged checkpoint must not displace the newest valid one.
void check_a_valid_one_stays(const CheckpointDirectory& directory, const std::vector<CheckpointEntry>& unwanted) {
  const NewestValid newest = directory.newest_valid();
  if (!newest.found) return;
  if (std::ranges::find(unwanted, newest.found->folder, &CheckpointEntry::folder) == unwanted.end()) return;
  const auto damaged = std::ranges::find(newest.passed_over, FolderState::in_place, &PassedOver::state);
  if (damaged == newest.passed_over.end()) return;  // the run has saved a newer one since
  throw CheckpointError(
      damaged->folder,
      fmt::format("is damaged, and the newest valid checkpoint, {}, would be removed", newest.found->folder.string()),
      "keep more with --keep-last, or remove the damaged one yourself");
}

std::vector<StepFolder> abandoned_in(FileSystem& files, const fs::path& root) {
  std::vector<StepFolder> folders = list_step_folders(files, root);
  std::erase_if(folders, [](const StepFolder& folder) { return folder.state != FolderState::abandoned; });
  return folders;
}

void report(const std::vector<StepFolder>& removed, const PruneOptions& options) {
  Json list = Json::array();
  for (const StepFolder& folder : removed) {
    list.push_back({{"path", folder.path.string()}, {"step", folder.step}});
    if (!options.json) print_text("{} {}\n", options.dry_run ? "would remove" : "removed", folder.path.string());
  }
  if (options.json) print_json(Json{{"dry_run", options.dry_run}, {"removed", list}});
  if (!options.json && removed.empty()) print_text("nothing to remove\n");
}

void run(const PruneOptions& options, const Words& words) {
  const auto run = only_word(words, "gradring ckpt prune RUN");
  if (options.retention.keep_last == 0 && !options.abandoned)
    throw UsageError("--keep-last is missing: give the number of checkpoints to keep");
  const Directory held(run);  // none: checkpoints_of_run says why
  PosixFileSystem files(held);
  const fs::path root = checkpoints_of_run(files, run);
  CheckpointDirectory directory(files, root, options.retention);
  const std::vector<CheckpointEntry> unwanted = directory.unwanted();
  if (!unwanted.empty()) check_a_valid_one_stays(directory, unwanted);
  std::vector<StepFolder> going = options.abandoned ? abandoned_in(files, root) : std::vector<StepFolder>();
  for (const CheckpointEntry& entry : unwanted) going.push_back({.step = entry.step, .path = entry.folder});
  if (!options.dry_run) {
    for (const auto& problems : {directory.prune(unwanted), options.abandoned ? directory.remove_abandoned() : Words()})
      if (!problems.empty()) throw EnvironmentError(problems.front());
  }
  report(going, options);
}

}  // namespace

const Command kCkptLs = make_command<LsOptions>("ls", "checkpoints of a run");
const Command kCkptVerify = make_command<VerifyCheckpointOptions>("verify", "bitwise check against the saved hashes");
const Command kCkptPrune = make_command<PruneOptions>("prune", "removal of checkpoints that need not stay");

}  // namespace gradring::train
