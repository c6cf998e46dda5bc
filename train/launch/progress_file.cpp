// SPDX-License-Identifier: Apache-2.0
#include "train/launch/progress_file.h"

#include <charconv>
#include <filesystem>
#include <fstream>

namespace gradring::train {

bool write_progress(const std::string& path, std::int64_t step) {
  if (path.empty()) return false;
  const std::string draft = path + ".new";
  std::ofstream file(draft, std::ios::trunc);
  file << step << std::flush;
  std::error_code error;
  if (file.good()) std::filesystem::rename(draft, path, error);
  return file.good() && !error;
}

std::optional<std::int64_t> read_progress(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  std::int64_t step = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, step);
  if (error != std::errc() || stop != end || step < 0) return std::nullopt;
  return step;
}

}  // namespace gradring::train
