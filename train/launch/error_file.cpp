// SPDX-License-Identifier: Apache-2.0
#include "train/launch/error_file.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace gradring::train {

using nlohmann::json;

namespace {

/// torch writes it as a number or as a string, depending on who reports.
std::int64_t timestamp_of(const json& message) {
  const auto extra = message.find("extraInfo");
  if (extra == message.end() || !extra->is_object()) return 0;
  const auto timestamp = extra->find("timestamp");
  if (timestamp == extra->end()) return 0;
  if (timestamp->is_string()) return std::atoll(timestamp->get_ref<const std::string&>().c_str());
  return timestamp->is_number() ? timestamp->get<std::int64_t>() : 0;
}

}  // namespace

bool write_error_file(const std::string& path, const std::string& message) {
  if (path.empty()) return false;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  // torch writes the timestamp as a string, and its reports show the call stack in the message's stead.
  const json content = {
      {"message",
       {{"message", message}, {"extraInfo", {{"py_callstack", message}, {"timestamp", std::to_string(seconds)}}}}}};
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
  report.timestamp = timestamp_of(message);
  return report;
}

}  // namespace gradring::train
