// SPDX-License-Identifier: Apache-2.0
#include "train/launch/error_file.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace gradring::train {

using nlohmann::json;

bool write_error_file(const std::string& path, const std::string& message) {
  if (path.empty()) return false;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  // torch writes the timestamp as a string.
  const json content = {
      {"message",
       {{"message", message}, {"extraInfo", {{"py_callstack", ""}, {"timestamp", std::to_string(seconds)}}}}}};
  std::ofstream file(path, std::ios::trunc);
  file << content.dump(-1, ' ', false, json::error_handler_t::replace) << std::flush;
  return file.good();
}

std::optional<ErrorReport> read_error_file(const std::string& path) {
  std::ifstream file(path);
  const json content = json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!content.is_object() || !content.contains("message")) return std::nullopt;
  const json& message = content["message"];
  if (message.is_string())
    return ErrorReport{.message = message.get<std::string>()};  // torch's handler for C++ crashes
  if (!message.is_object() || !message.contains("message") || !message["message"].is_string()) return std::nullopt;

  ErrorReport report{.message = message["message"].get<std::string>()};
  const json timestamp = message.value("/extraInfo/timestamp"_json_pointer, json());
  if (timestamp.is_string()) report.timestamp = std::atoll(timestamp.get_ref<const std::string&>().c_str());
  if (timestamp.is_number()) report.timestamp = timestamp.get<std::int64_t>();
  return report;
}

}  // namespace gradring::train
