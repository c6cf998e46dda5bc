// SPDX-License-Identifier: Apache-2.0
#include "train/report/run_directory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "train/config/resolve.h"
#include "train/config/usage_error.h"
#include "train/report/environment_error.h"
#include "train/report/json_lines.h"
#include "train/report/line_file.h"

namespace gradring::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLogs = "logs";
constexpr const char* kSettings = "config.resolved.toml";

[[noreturn]] void refuse_taken(const fs::path& path) {
  throw UsageError("--run-dir " + path.string() +
                   " is there already: choose another, remove it, or go on in it by --resume auto");
}

void check_made(const fs::path& path, const std::error_code& error) {
  if (error)
    throw EnvironmentError("cannot make the run directory " + path.string() + ": " + error.message() +
                           "; choose another --run-dir");
}

}  // namespace

fs::path run_dir_for(const TrainConfig& config) {
  if (!config.run_dir.empty()) {
    const fs::path given = config.run_dir;
    return given.has_filename() ? given : given.parent_path();  // without a slash behind it
  }
  const std::string name =
      fmt::format("runs/{}-{}-{:%Y%m%d-%H%M%S}", config.dataset, config.model, fmt::localtime(std::time(nullptr)));
  fs::path path = name;
  for (int number = 2; fs::exists(path); ++number) path = fmt::format("{}-{}", name, number);
  return path;
}

void check_new_run_dir(const fs::path& path) {
  std::error_code ignored;  // what cannot be looked at cannot be made either: make_run_dir says why
  if (fs::exists(fs::symlink_status(path, ignored))) refuse_taken(path);
}

void check_is_run_dir(const fs::path& path) {
  if (!fs::exists(path / kSettings))
    throw UsageError("--run-dir " + path.string() + " is no run directory (it has no " + kSettings +
                     "): choose another");
}

void clear_half_made_run_dir(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(path, error))) return;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const bool empty_logs = entry.path().filename() == kLogs && fs::is_empty(entry.path(), error);
    if (!empty_logs && entry.path() != draft_of(path / kSettings)) return;
  }
  fs::remove(path / kLogs, error);
  fs::remove(draft_of(path / kSettings), error);
}

bool is_vacant(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(fs::symlink_status(path, error)) && fs::is_empty(path, error);
}

void continue_run_dir(const fs::path& path, const TrainConfig& config, std::int64_t steps, std::int64_t epoch) {
  write_file_whole(path / kSettings, to_toml(config));
  std::error_code ignored;  // it may not be there
  fs::remove(path / "summary.json", ignored);
  keep_metrics_until(metrics_of(path), steps, epoch);
}

void make_run_dir(const fs::path& path, const TrainConfig& config) {
  const auto may_go_there = [&] { return config.resume == "auto" && is_vacant(path); };
  if (!may_go_there()) check_new_run_dir(path);
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  check_made(path, error);
  const bool made = fs::create_directory(path, error);
  check_made(path, error);
  if (!made && !may_go_there()) refuse_taken(path);  // by another run, just now
  if (!fs::create_directory(path / kLogs, error) && !error) refuse_taken(path);
  try {
    check_made(path, error);
    write_file_whole(path / kSettings, to_toml(config));
  } catch (...) {
    if (made)
      fs::remove_all(path, error);
    else
      clear_half_made_run_dir(path);
    throw;
  }
}

fs::path checkpoints_of(const fs::path& run_dir) { return run_dir / "checkpoints"; }
fs::path metrics_of(const fs::path& run_dir) { return run_dir / "metrics.jsonl"; }
fs::path log_file(const fs::path& run_dir, int rank) { return run_dir / kLogs / fmt::format("rank_{}.log", rank); }

}  // namespace gradring::train
