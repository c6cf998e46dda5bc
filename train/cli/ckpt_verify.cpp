// SPDX-License-Identifier: Apache-2.0
#include "train/cli/ckpt_verify.h"

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/error.h"
#include "train/checkpoint/tensor_file.h"
#include "train/cli/ckpt_options.h"
#include "train/cli/print_json.h"
#include "train/cli/standard_output.h"
#include "train/config/usage_error.h"
#include "train/report/environment_error.h"
#include "train/setup/named_checkpoint.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHead =
    "gradring ckpt verify: compare checkpoints with what was saved, to the last bit\n\n"
    "  gradring ckpt verify PATH...                      checkpoints, run directories (all of theirs), files of "
    "tensors\n\n"
    "The run may go on: what it saves or removes at this moment is skipped. The exit code is 4 if anything is damaged, 3 if\n"
    "anything could not be read.\n\n"
    "Options:\n";

/// One thing that was looked at, and what came of it; without any of the three, it is valid.
struct Verified {
  fs::path path;
  std::vector<std::string> problems = {};
  std::string read_error = {};  ///< why it could not be read
  std::string skipped = {};     ///< why it is not judged
};

/// `problems` reads what is at the path, and returns what is wrong with it.
Verified judge(FileSystem& files, const fs::path& path, const std::function<std::vector<std::string>()>& problems) {
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

Verified judge_checkpoint(FileSystem& files, const fs::path& folder) {
  return judge(files, folder, [&] { return verify_checkpoint(files, folder); });
}

Verified judge_file(FileSystem& files, const fs::path& path) {
  return judge(files, path, [&] {
    read_tensor_file(files, path);
    return std::vector<std::string>();
  });
}

/// Each checkpoint, and the links. What was never finished is no fault: nobody takes it.
std::vector<Verified> verify_run(FileSystem& files, const fs::path& run) {
  const fs::path root = checkpoints_of_run(files, run);
  const bool in_use = run_goes_on(root);
  std::vector<Verified> all;
  for (const StepFolder& folder : list_step_folders(files, root))
    all.push_back(folder.state == FolderState::in_place
                      ? judge_checkpoint(files, folder.path)
                      : Verified{.path = folder.path, .skipped = state_text(folder.state, in_use)});
  for (const char* link : {kLatestLink, kBestLink})
    if (files.exists(root / link) && !is_checkpoint(files, root / link))
      all.push_back({root / link, {(root / link).string() + ": leads to no checkpoint; remove it"}});
  return all;
}

std::vector<Verified> verify(FileSystem& files, const fs::path& path) {
  std::error_code ignored;
  if (!files.exists(path))
    return {{path, {path.string() + ": is not there; name a checkpoint, a run directory or a file"}}};
  if (!fs::is_directory(path, ignored)) return {judge_file(files, path)};
  if (is_checkpoint(files, path)) return {judge_checkpoint(files, followed(files, path))};
  try {
    return verify_run(files, path);
  } catch (const CheckpointError& error) {
    return {{path, {error.what()}}};
  }
}

void print(const Verified& verified) {
  for (const std::string& problem : verified.problems) fmt::print("BAD  {}\n", problem);
  if (!verified.read_error.empty())
    fmt::print("ERR  {}\n", verified.read_error);
  else if (!verified.skipped.empty())
    fmt::print("skip {}: {}\n", verified.path.string(), verified.skipped);
  else if (verified.problems.empty())
    fmt::print("ok   {}\n", verified.path.string());
  flush_standard_output();
}

nlohmann::ordered_json to_json(const Verified& verified) {
  nlohmann::ordered_json json = {{"path", verified.path.string()}, {"problems", verified.problems}};
  if (!verified.read_error.empty()) json["error"] = verified.read_error;
  if (!verified.skipped.empty()) json["skipped"] = verified.skipped;
  return json;
}

}  // namespace

void ckpt_verify(std::span<const std::string> args) {
  bool json = false;
  const CommandLine line{.command = "gradring ckpt verify", .options = {json_switch(json)}, .takes_words = true};
  const CommandWords words = read_command_line(line, args);
  if (words.help) {
    fmt::print("{}{}", kHead, help_of(line.options));
    return;
  }
  if (words.words.empty()) throw UsageError("name what to verify: gradring ckpt verify PATH...");
  PosixFileSystem files;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::size_t judged = 0, bad = 0, unreadable = 0;
  for (const std::string& path : words.words)
    for (const Verified& verified : verify(files, path)) {
      judged += verified.skipped.empty();
      bad += !verified.problems.empty();
      unreadable += !verified.read_error.empty();
      list.push_back(to_json(verified));
      if (!json) print(verified);
    }
  if (json) print_json(list);
  const std::string what = words.words.front() + (words.words.size() > 1 ? ", ..." : "");
  if (bad > 0)
    throw CheckpointError(what, fmt::format("{} of {} are damaged", bad, judged),
                          "resume from a valid one; --resume auto finds the newest");
  if (unreadable > 0)
    throw EnvironmentError(fmt::format("{}: {} of {} could not be read; look at the disk and at the permissions", what,
                                       unreadable, judged));
}

}  // namespace gradring::train
