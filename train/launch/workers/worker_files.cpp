// SPDX-License-Identifier: Apache-2.0
#include "train/launch/workers/worker_files.h"

#include <charconv>
#include <fstream>
#include <sstream>

#include "kernels/base/file.h"
#include "train/launch/workers/private_folder.h"

namespace gradring::train {
namespace {

constexpr std::size_t kMaxProgressBytes = 4096;
constexpr const char* kRankToken = "rank-token";  // not an entry of a FileStore, so agents do not send it

}  // namespace

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
  std::istringstream text(read_regular_file(path, kMaxProgressBytes).value_or(""));
  std::string word;
  text >> word;
  std::int64_t step = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, step);
  if (error != std::errc() || stop != end || step < 0) return std::nullopt;
  return step;
}

void write_rank_token(const std::filesystem::path& store, const std::string& token) {
  write_private_file(store / kRankToken, token + "\n");
}

std::string read_rank_token(const std::filesystem::path& store) {
  return std::filesystem::exists(store / kRankToken) ? read_private_file(store / kRankToken) : "";
}

}  // namespace gradring::train
