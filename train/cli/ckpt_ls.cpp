// SPDX-License-Identifier: Apache-2.0
#include "train/cli/ckpt_ls.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "train/checkpoint/listing.h"
#include "train/cli/ckpt_options.h"
#include "train/cli/print_json.h"

namespace gradring::train {
namespace {

constexpr const char* kHead =
    "gradring ckpt ls: the checkpoints of a run, the newest first\n\n"
    "  gradring ckpt ls RUN                              a run directory, or its folder checkpoints/\n\n"
    "The run may go on: what it saves or removes at this moment is shown as such. gradring ckpt verify says why a\n"
    "checkpoint is DAMAGED or UNREADABLE.\n\n"
    "Options:\n";

/// When a folder got its last entry; nothing if it cannot be told, as of a link to nowhere.
std::optional<std::tm> date_of(const std::filesystem::path& folder) {
  std::error_code error;
  const auto changed = std::chrono::file_clock::to_sys(std::filesystem::last_write_time(folder, error));
  if (error) return std::nullopt;
  return fmt::gmtime(
      std::chrono::system_clock::to_time_t(std::chrono::time_point_cast<std::chrono::system_clock::duration>(changed)));
}

std::string state_of(const ListedCheckpoint& listed, bool run_goes_on) {
  if (listed.folder.state != FolderState::in_place) return state_text(listed.folder.state, run_goes_on);
  switch (listed.meta) {
    case MetaState::valid: return "readable";
    case MetaState::damaged: return "DAMAGED";
    case MetaState::unreadable: return "UNREADABLE";
  }
  return {};
}

std::string marks_of(const ListedCheckpoint& listed) {
  if (listed.is_latest && listed.is_best) return "latest, best";
  return listed.is_latest ? "latest" : listed.is_best ? "best" : "";
}

void print(const std::vector<ListedCheckpoint>& all, bool run_goes_on) {
  fmt::print("{:>10} {:>10} {:>12}  {:<19}  {:<14}  {}\n", "step", "score", "bytes", "date (UTC)", "state", "marks");
  for (const ListedCheckpoint& listed : all) {
    const std::string score = listed.score ? fmt::format("{:.6f}", *listed.score) : "-";
    const auto changed = date_of(listed.folder.path);
    const std::string date = changed ? fmt::format("{:%Y-%m-%d %H:%M:%S}", *changed) : "-";
    const std::string line = fmt::format("{:>10} {:>10} {:>12}  {:<19}  {:<14}  {}", listed.folder.step, score,
                                         listed.bytes, date, state_of(listed, run_goes_on), marks_of(listed));
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

nlohmann::ordered_json to_json(const ListedCheckpoint& listed, bool run_goes_on) {
  nlohmann::ordered_json json = {{"path", listed.folder.path.string()}, {"step", listed.folder.step}};
  json["score"] = listed.score ? nlohmann::ordered_json(*listed.score) : nlohmann::ordered_json();
  json["bytes"] = listed.bytes;
  const auto changed = date_of(listed.folder.path);
  json["date"] = changed ? nlohmann::ordered_json(fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", *changed)) : nullptr;
  json["state"] = state_of(listed, run_goes_on);
  json["latest"] = listed.is_latest;
  json["best"] = listed.is_best;
  return json;
}

}  // namespace

void ckpt_ls(std::span<const std::string> args) {
  bool json = false;
  const CommandLine line{.command = "gradring ckpt ls", .options = {json_switch(json)}, .takes_words = true};
  const CommandWords words = read_command_line(line, args);
  if (words.help) {
    fmt::print("{}{}", kHead, help_of(line.options));
    return;
  }
  PosixFileSystem files;
  const auto root = checkpoints_of_run(files, only_path(words, line, "RUN"));
  const bool in_use = run_goes_on(root);
  const auto all = list_checkpoints(files, root);
  if (!json) return print(all, in_use);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ListedCheckpoint& listed : all) list.push_back(to_json(listed, in_use));
  print_json(list);
}

}  // namespace gradring::train
