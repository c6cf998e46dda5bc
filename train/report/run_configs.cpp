// SPDX-License-Identifier: Apache-2.0
#include "train/report/run_configs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "train/report/line_file.h"

namespace gradring::train {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kStem = "config.resolved";
constexpr std::string_view kEnding = ".toml";

fs::path numbered(const fs::path& run_dir, int number) {
  return run_dir / (number == 1 ? fmt::format("{}{}", kStem, kEnding) : fmt::format("{}-{}{}", kStem, number, kEnding));
}

/// 3 for config.resolved-3.toml; 0 for another name.
int number_of(const std::string& name) {
  const std::string head = fmt::format("{}-", kStem);
  if (!name.starts_with(head) || !name.ends_with(kEnding)) return 0;
  int number = 0;
  const char* const end = name.data() + name.size() - kEnding.size();
  const auto [stop, error] = std::from_chars(name.data() + head.size(), end, number);
  return error == std::errc() && stop == end && number > 1 ? number : 0;
}

/// 0 if there is none.
int newest_number(const fs::path& run_dir) {
  std::error_code ignored;
  int newest = fs::exists(first_config(run_dir), ignored) ? 1 : 0;
  for (const auto& entry : fs::directory_iterator(run_dir, ignored))
    newest = std::max(newest, number_of(entry.path().filename()));
  return newest;
}

}  // namespace

fs::path first_config(const fs::path& run_dir) { return numbered(run_dir, 1); }
fs::path newest_config(const fs::path& run_dir) { return numbered(run_dir, std::max(1, newest_number(run_dir))); }

fs::path write_next_config(const fs::path& run_dir, std::string_view text) {
  const fs::path path = numbered(run_dir, newest_number(run_dir) + 1);
  write_file_whole(path, text);
  return path;
}

}  // namespace gradring::train
