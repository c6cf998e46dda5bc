// SPDX-License-Identifier: Apache-2.0
#include "train/launch/workers/worker_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "kernels/base/file.h"
#include "train/launch/workers/private_folder.h"

namespace gradring::train {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxErrorBytes = 1024 * 1024;  // a long call stack has some thousand bytes
constexpr std::size_t kMaxProgressBytes = 4096;
constexpr const char* kRankToken = "rank-token";  // not an entry of a FileStore, so agents do not send it

/// torch writes it as a number or a string, depending on the reporter.
std::int64_t timestamp_of(const json& message) {
  const auto extra = message.find("extraInfo");
  if (extra == message.end() || !extra->is_object()) return 0;
  const auto timestamp = extra->find("timestamp");
  if (timestamp == extra->end()) return 0;
  if (timestamp->is_string()) return std::atoll(timestamp->get_ref<const std::string&>().c_str());
  return timestamp->is_number_integer() ? timestamp->get<std::int64_t>() : 0;
}

}  // namespace

bool write_error_file(const std::string& path, const std::string& message) {
  if (path.empty()) return false;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  // torch writes the timestamp as a string, and its reports print the call stack instead of the message.
  const json content = {
      {"message",
       {{"message", message}, {"extraInfo", {{"py_callstack", message}, {"timestamp", std::to_string(seconds)}}}}}};
  std::ofstream file(path, std::ios::trunc);
  file << content.dump(-1, ' ', false, json::error_handler_t::replace) << std::flush;
  return file.good();
}

std::optional<ErrorReport> read_error_file(const std::string& path) {
  const json content =
      json::parse(read_regular_file(path, kMaxErrorBytes).value_or(""), nullptr, /*allow_exceptions=*/false);
  if (!content.is_object() || !content.contains("message")) return std::nullopt;
  const json& message = content["message"];
  if (message.is_string())
    return ErrorReport{.message = message.get<std::string>()};  // torch's handler for C++ crashes
  if (!message.is_object() || !message.contains("message") || !message["message"].is_string()) return std::nullopt;
  return ErrorReport{.message = message["message"].get<std::string>(), .timestamp = timestamp_of(message)};
}

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

std::optional<std::string> read_regular_file(const std::filesystem::path& path, std::size_t most_bytes) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  std::string text;
  char piece[4096];
  while (text.size() <= most_bytes) {
    const ssize_t count = ::read(file.get(), piece, sizeof piece);
    if (count == 0) return text;
    if (count > 0) text.append(piece, static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR) break;
  }
  return std::nullopt;
}

}  // namespace gradring::train
