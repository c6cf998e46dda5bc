// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/json_members.h"

#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {
namespace {

using Json = JsonMembers::Json;

constexpr int kMostLevels = 64;
constexpr std::size_t kMostMembers = 1u << 15;

}  // namespace

Json parse_checkpoint_json(std::string_view text, const std::filesystem::path& path) {
  std::size_t members = 0;
  const auto within_limits = [&](int depth, Json::parse_event_t event, const Json&) {
    if (event == Json::parse_event_t::key) ++members;
    if (depth > kMostLevels || members > kMostMembers)
      throw CheckpointError(path, "has JSON of more than 64 levels or 32,768 members", kUseAnotherCheckpoint);
    return true;
  };
  try {
    return Json::parse(text, within_limits);
  } catch (const Json::exception&) {
    throw CheckpointError(path, "is not valid JSON", kUseAnotherCheckpoint);
  }
}

const Json& JsonMembers::object(const char* name) const {
  const Json& value = at(name);
  if (!value.is_object()) refuse(name, "an object");
  return value;
}

std::string JsonMembers::text(const char* name) const {
  const Json& value = at(name);
  if (!value.is_string()) refuse(name, "text");
  return value.get<std::string>();
}

std::map<std::string, std::string> JsonMembers::texts(const char* name) const {
  std::map<std::string, std::string> texts;
  for (const auto& [key, value] : object(name).items()) {
    if (!value.is_string()) refuse(name, "an object of texts");
    texts[key] = value.get<std::string>();
  }
  return texts;
}

const Json& JsonMembers::at(const char* name) const {
  const auto found = json_.is_object() ? json_.find(name) : json_.end();
  if (found == json_.end()) throw CheckpointError(path_, "has no member " + in_quotes(name), kUseAnotherCheckpoint);
  return *found;
}

void JsonMembers::refuse(const char* name, const std::string& expected) const {
  throw CheckpointError(path_, "has " + in_quotes(name) + " = " + in_quotes(at(name).dump()) + ", expected " + expected,
                        kUseAnotherCheckpoint);
}

}  // namespace gradring::train
