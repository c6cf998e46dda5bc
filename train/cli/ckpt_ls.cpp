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
    "Options:\n";

/// When a folder got its last entry.
std::tm date_of(const std::filesystem::path& folder) {
  const auto changed = std::chrono::file_clock::to_sys(std::filesystem::last_write_time(folder));
  return fmt::gmtime(
      std::chrono::system_clock::to_time_t(std::chrono::time_point_cast<std::chrono::system_clock::duration>(changed)));
}

std::string state_of(const ListedCheckpoint& listed) {
  switch (listed.folder.state) {
    case FolderState::partial: return "never finished";
    case FolderState::removing: return "being removed";
    case FolderState::replaced: return "replaced";
    case FolderState::in_place: break;
  }
  return listed.readable ? "readable" : "DAMAGED";
}

std::string marks_of(const ListedCheckpoint& listed) {
  if (listed.is_latest && listed.is_best) return "latest, best";
  return listed.is_latest ? "latest" : listed.is_best ? "best" : "";
}

void print(const std::vector<ListedCheckpoint>& all) {
  fmt::print("{:>10} {:>10} {:>12}  {:<19}  {:<14}  {}\n", "step", "score", "bytes", "date (UTC)", "state", "marks");
  for (const ListedCheckpoint& listed : all) {
    const std::string score = listed.score ? fmt::format("{:.6f}", *listed.score) : "-";
    const std::string line =
        fmt::format("{:>10} {:>10} {:>12}  {:%Y-%m-%d %H:%M:%S}  {:<14}  {}", listed.folder.step, score, listed.bytes,
                    date_of(listed.folder.path), state_of(listed), marks_of(listed));
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

nlohmann::ordered_json to_json(const ListedCheckpoint& listed) {
  nlohmann::ordered_json json = {{"path", listed.folder.path.string()}, {"step", listed.folder.step}};
  json["score"] = listed.score ? nlohmann::ordered_json(*listed.score) : nlohmann::ordered_json();
  json["bytes"] = listed.bytes;
  json["date"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", date_of(listed.folder.path));
  json["state"] = state_of(listed);
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
  const auto all = list_checkpoints(files, checkpoints_of_run(files, only_path(words, line, "RUN")));
  if (!json) return print(all);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ListedCheckpoint& listed : all) list.push_back(to_json(listed));
  print_json(list);
}

}  // namespace gradring::train
