// SPDX-License-Identifier: Apache-2.0
#include "train/cli/ckpt_prune.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/error.h"
#include "train/cli/bench_options.h"
#include "train/cli/ckpt_options.h"
#include "train/cli/print_json.h"
#include "train/config/usage_error.h"
#include "train/report/environment_error.h"

namespace gradring::train {
namespace {

constexpr const char* kHead =
    "gradring ckpt prune: remove the checkpoints of a run that need not stay\n\n"
    "  gradring ckpt prune RUN --keep-last N [--keep-best K] [--abandoned] [--dry-run]\n"
    "  gradring ckpt prune RUN --abandoned [--dry-run]\n\n"
    "What the links `latest` and `best` name stays, and what is damaged or cannot be read: gradring ckpt verify says why.\n"
    "The run may go on.\n\n"
    "Options; in brackets the default:\n";

struct Options {
  Retention retention;
  bool abandoned = false;
  bool dry_run = false;
  bool json = false;
};

CommandLine command_line(Options& options) {
  return {.command = "gradring ckpt prune",
          .options = {count_option("keep-last", "checkpoints of the highest steps that stay", 1,
                                   options.retention.keep_last),
                      count_option("keep-best", "beside them, those of the highest scores [1]", 0,
                                   options.retention.keep_best),
                      CommandOption{.name = "abandoned",
                                    .letter = 0,
                                    .value = {},
                                    .help = "also abandoned-step-N, which a resume from an earlier step left",
                                    .read = set_switch("abandoned", options.abandoned)},
                      CommandOption{.name = "dry-run",
                                    .letter = 0,
                                    .value = {},
                                    .help = "say what would go, and remove nothing",
                                    .read = set_switch("dry-run", options.dry_run)},
                      json_switch(options.json)},
          .takes_words = true};
}

/// A damaged checkpoint must not push out the newest that is valid.
void check_a_valid_one_stays(const CheckpointDirectory& directory, const std::vector<CheckpointEntry>& unwanted) {
  const NewestValid newest = directory.newest_valid();
  if (!newest.found) return;
  if (std::ranges::find(unwanted, newest.found->folder, &CheckpointEntry::folder) == unwanted.end()) return;
  const auto damaged = std::ranges::find(newest.passed_over, FolderState::in_place, &PassedOver::state);
  if (damaged == newest.passed_over.end()) return;  // the run has saved a newer one since
  throw CheckpointError(
      damaged->folder,
      fmt::format("is damaged, and {} is the newest valid checkpoint, which would go", newest.found->folder.string()),
      "keep more by --keep-last, or remove the damaged one yourself");
}

std::vector<StepFolder> abandoned_in(FileSystem& files, const std::filesystem::path& root) {
  std::vector<StepFolder> folders = list_step_folders(files, root);
  std::erase_if(folders, [](const StepFolder& folder) { return folder.state != FolderState::abandoned; });
  return folders;
}

void report(const std::vector<StepFolder>& removed, const Options& options) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const StepFolder& folder : removed) {
    list.push_back({{"path", folder.path.string()}, {"step", folder.step}});
    if (!options.json) fmt::print("{} {}\n", options.dry_run ? "would remove" : "removed", folder.path.string());
  }
  if (options.json) print_json(nlohmann::ordered_json{{"dry_run", options.dry_run}, {"removed", list}});
  if (!options.json && removed.empty()) fmt::print("nothing to remove\n");
}

}  // namespace

void ckpt_prune(std::span<const std::string> args) {
  Options options;
  const CommandLine line = command_line(options);
  const CommandWords words = read_command_line(line, args);
  if (words.help) {
    fmt::print("{}{}", kHead, help_of(line.options));
    return;
  }
  const auto run = only_path(words, line, "RUN");
  if (options.retention.keep_last == 0 && !options.abandoned)
    throw UsageError("say how many are to stay: --keep-last N");
  PosixFileSystem files;
  const std::filesystem::path root = checkpoints_of_run(files, run);
  CheckpointDirectory directory(files, root, options.retention);
  const std::vector<CheckpointEntry> unwanted = directory.unwanted();
  if (!unwanted.empty()) check_a_valid_one_stays(directory, unwanted);
  std::vector<StepFolder> going = options.abandoned ? abandoned_in(files, root) : std::vector<StepFolder>();
  for (const CheckpointEntry& entry : unwanted) going.push_back({.step = entry.step, .path = entry.folder});
  if (!options.dry_run) {
    const std::vector<std::string> problems = directory.prune(unwanted);
    if (!problems.empty()) throw EnvironmentError(problems.front());
    if (options.abandoned) directory.remove_abandoned();
  }
  report(going, options);
}

}  // namespace gradring::train
