// SPDX-License-Identifier: Apache-2.0
#include "train/report/rank_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace gradring::train {

RankLog::RankLog(const std::filesystem::path& path)
    : file_(path), progress_([this](std::string_view line) { say(line); }) {}

void RankLog::say(std::string_view line) {
  file_.append(fmt::format("{:%Y-%m-%d %H:%M:%S}  {}", fmt::localtime(std::time(nullptr)), line));
}

}  // namespace gradring::train
