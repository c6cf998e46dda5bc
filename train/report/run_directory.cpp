// SPDX-License-Identifier: Apache-2.0
#include "train/report/run_directory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "train/config/resolve.h"
#include "train/config/usage_error.h"
#include "train/report/environment_error.h"
#include "train/report/line_file.h"

namespace gradring::train {

namespace fs = std::filesystem;

fs::path default_run_dir(const TrainConfig& config) {
  const std::string name = fmt::format("runs/{}-{}-{:%Y%m%d-%H%M%S}", config.dataset, config.model,
                                       fmt::localtime(std::time(nullptr)));
  fs::path path = name;
  for (int number = 2; fs::exists(path); ++number) path = fmt::format("{}-{}", name, number);
  return path;
}

void make_run_dir(const fs::path& path, const TrainConfig& config) {
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  const bool made = !error && fs::create_directory(path, error);
  if (error)
    throw EnvironmentError("cannot make the run directory " + path.string() + ": " + error.message() +
                           "; choose another --run-dir");
  if (!made) throw UsageError("the run directory " + path.string() + " is there already: choose another --run-dir");
  try {
    write_file_whole(path / "config.resolved.toml", to_toml(config));
  } catch (...) {
    fs::remove_all(path, error);
    throw;
  }
}

}  // namespace gradring::train
