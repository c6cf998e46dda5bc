// SPDX-License-Identifier: Apache-2.0
#include "train/launch/logs/log_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernels/runtime/error.h"
#include "train/launch/run_folder.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_make(const fs::path& folder, const std::string& why) {
  throw DeviceError(fmt::format("cannot make {}, a folder of logs: {}; point --log-dir at one that can be written",
                                folder.string(), why));
}

void make(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) cannot_make(folder, error.message());
}

/// A run id as the name of a folder.
std::string folder_name(std::string run_id) {
  std::ranges::replace(run_id, '/', '_');
  return run_id.empty() || run_id.starts_with('.') ? "_" + run_id : run_id;
}

/// Makes parent/name, or parent/name_2, ... whichever is new.
fs::path make_new(const fs::path& parent, const std::string& name) {
  make(parent);
  for (int i = 1;; ++i) {
    fs::path folder = parent / (i == 1 ? name : fmt::format("{}_{}", name, i));
    std::error_code error;
    if (fs::create_directory(folder, error)) return folder;
    if (error && error != std::errc::file_exists) cannot_make(folder, error.message());
  }
}

fs::path make_temporary() {
  std::string name = (RunFolder::default_parent() / "gradring-logs-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) cannot_make(name, std::strerror(errno));
  return name;
}

}  // namespace

LogFolder::LogFolder(LogSpec spec, const std::string& run_id) : spec_(std::move(spec)) {
  is_surprise_ = spec_.folder.empty() && !spec_.redirects.empty();
  if (!spec_.folder.empty() || is_surprise_)
    path_ = make_new(is_surprise_ ? make_temporary() : fs::absolute(spec_.folder), folder_name(run_id));
}

fs::path LogFolder::of_worker(int attempt, int local_rank) const {
  if (path_.empty()) return {};
  fs::path folder = path_ / fmt::format("attempt_{}", attempt) / std::to_string(local_rank);
  make(folder);
  return folder;
}

OutputRoute LogFolder::route(Stream stream, const LineOwner& owner, const fs::path& folder) const {
  const bool teed = spec_.tee.has(owner.local_rank, stream);
  const bool kept = teed || spec_.redirects.has(owner.local_rank, stream);
  const bool shown = spec_.shown.empty() || std::ranges::find(spec_.shown, owner.local_rank) != spec_.shown.end();
  OutputRoute route{.hidden = !shown};
  if (teed && shown) route.prefix = LinePrefix(spec_.prefix, owner);
  if (kept && !folder.empty()) route.file = folder / (stream == Stream::out ? "stdout.log" : "stderr.log");
  return route;
}

}  // namespace gradring::train
