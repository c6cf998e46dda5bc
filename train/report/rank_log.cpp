// SPDX-License-Identifier: Apache-2.0
#include "train/report/rank_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace gradring::train {

namespace {

/// Rank 0 made the run directory; on another machine it is not there yet.
std::filesystem::path with_folder(const std::filesystem::path& path) {
  std::error_code ignored;  // opening the file says what is wrong
  std::filesystem::create_directories(path.parent_path(), ignored);
  return path;
}

}  // namespace

RankLog::RankLog(const std::filesystem::path& path)
    : file_(with_folder(path)), progress_([this](std::string_view line) { say(line); }) {}

void RankLog::say(std::string_view line) {
  file_.append(fmt::format("{:%Y-%m-%d %H:%M:%S}  {}", fmt::localtime(std::time(nullptr)), line));
}

}  // namespace gradring::train
