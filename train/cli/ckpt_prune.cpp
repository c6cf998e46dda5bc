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
    "  gradring ckpt prune RUN --keep-last N [--keep-best K] [--dry-run]\n\n"
    "What the links `latest` and `best` name stays, and what cannot be read: look at it by gradring ckpt verify. Not "
    "for a\n"
    "run that goes on: it prunes by itself.\n\n"
    "Options; in brackets the default:\n";

struct Options {
  Retention retention;
  bool dry_run = false;
  bool json = false;
};

CommandLine command_line(Options& options) {
  return {.command = "gradring ckpt prune",
          .options = {count_option("keep-last", "checkpoints of the highest steps that stay", 1,
                                   options.retention.keep_last),
                      count_option("keep-best", "beside them, those of the highest scores [1]", 0,
                                   options.retention.keep_best),
                      CommandOption{.name = "dry-run",
                                    .letter = 0,
                                    .value = {},
                                    .help = "say what would go, and remove nothing",
                                    .read = set_switch("dry-run", options.dry_run)},
                      json_switch(options.json)},
          .takes_words = true};
}

/// A damaged checkpoint must not push out the newest that is sound.
void check_a_sound_one_stays(const CheckpointDirectory& directory, const std::vector<CheckpointEntry>& unwanted) {
  const NewestValid newest = directory.newest_valid();
  if (!newest.found) return;
  if (std::ranges::find(unwanted, newest.found->folder, &CheckpointEntry::folder) == unwanted.end()) return;
  throw CheckpointError(
      newest.passed_over.front().folder,
      fmt::format("is damaged, and {} is the newest sound checkpoint, which would go", newest.found->folder.string()),
      "keep more by --keep-last, or remove the damaged one yourself");
}

void report(const std::vector<CheckpointEntry>& unwanted, const Options& options) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const CheckpointEntry& entry : unwanted) {
    list.push_back({{"path", entry.folder.string()}, {"step", entry.step}});
    if (!options.json) fmt::print("{} {}\n", options.dry_run ? "would remove" : "removed", entry.folder.string());
  }
  if (options.json) print_json(nlohmann::ordered_json{{"dry_run", options.dry_run}, {"removed", list}});
  if (!options.json && unwanted.empty()) fmt::print("nothing to remove\n");
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
  if (options.retention.keep_last == 0) throw UsageError("say how many are to stay: --keep-last N");
  PosixFileSystem files;
  CheckpointDirectory directory(files, checkpoints_of_run(files, run), options.retention);
  const std::vector<CheckpointEntry> unwanted = directory.unwanted();
  check_a_sound_one_stays(directory, unwanted);
  const std::vector<std::string> problems = options.dry_run ? std::vector<std::string>() : directory.prune();
  if (!problems.empty()) throw EnvironmentError(problems.front());
  report(unwanted, options);
}

}  // namespace gradring::train
