// SPDX-License-Identifier: Apache-2.0
#include "train/cli/ckpt_verify.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/error.h"
#include "train/checkpoint/tensor_file.h"
#include "train/cli/ckpt_options.h"
#include "train/cli/print_json.h"
#include "train/cli/standard_output.h"
#include "train/config/usage_error.h"
#include "train/setup/named_checkpoint.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHead =
    "gradring ckpt verify: compare checkpoints with what was saved, to the last bit\n\n"
    "  gradring ckpt verify PATH...                      checkpoints, run directories (all of theirs), files of "
    "tensors\n\n"
    "Options:\n";

/// One thing that was looked at, and what is wrong with it.
struct Verified {
  fs::path path;
  std::vector<std::string> problems;
};

std::vector<std::string> problems_of_file(FileSystem& files, const fs::path& path) {
  try {
    read_tensor_file(files, path);
    return {};
  } catch (const CheckpointError& error) {
    return {error.what()};
  }
}

/// Its links, and each checkpoint in place; what was never finished is no fault: nobody takes it.
std::vector<Verified> verify_run(FileSystem& files, const fs::path& run) {
  const fs::path root = checkpoints_of_run(files, run);
  std::vector<Verified> all;
  for (const CheckpointEntry& entry : CheckpointDirectory(files, root).entries())
    all.push_back({entry.folder, verify_checkpoint(files, entry.folder)});
  for (const char* link : {kLatestLink, kBestLink})
    if (files.exists(root / link) && !is_checkpoint(files, root / link))
      all.push_back({root / link, {(root / link).string() + ": leads to no checkpoint; remove it"}});
  return all;
}

std::vector<Verified> verify(FileSystem& files, const fs::path& path) {
  std::error_code ignored;
  if (!files.exists(path))
    return {{path, {path.string() + ": is not there; name a checkpoint, a run directory or a file"}}};
  if (!fs::is_directory(path, ignored)) return {{path, problems_of_file(files, path)}};
  if (is_checkpoint(files, path)) return {{path, verify_checkpoint(files, path)}};
  try {
    return verify_run(files, path);
  } catch (const CheckpointError& error) {
    return {{path, {error.what()}}};
  }
}

void print(const Verified& verified) {
  if (verified.problems.empty()) fmt::print("ok   {}\n", verified.path.string());
  for (const std::string& problem : verified.problems) fmt::print("BAD  {}\n", problem);
  flush_standard_output();
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
  std::size_t bad = 0;
  for (const std::string& path : words.words)
    for (const Verified& verified : verify(files, path)) {
      bad += !verified.problems.empty();
      list.push_back({{"path", verified.path.string()}, {"problems", verified.problems}});
      if (!json) print(verified);
    }
  if (json) print_json(list);
  if (bad > 0)
    throw CheckpointError(words.words.front() + (words.words.size() > 1 ? ", ..." : ""),
                          fmt::format("{} of {} are not as they should be", bad, list.size()),
                          "resume from a sound one; --resume auto finds the newest");
}

}  // namespace gradring::train
