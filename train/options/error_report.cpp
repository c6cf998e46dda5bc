// SPDX-License-Identifier: Apache-2.0
#include "train/options/error_report.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/base/file.h"

namespace gradring::train {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxErrorBytes = 1024 * 1024;  // a long call stack has some thousand bytes

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

}  // namespace gradring::train
