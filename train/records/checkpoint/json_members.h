// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

namespace gradring::train {

/// The advice where a checkpoint is unusable.
inline constexpr const char* kUseAnotherCheckpoint = "use another checkpoint";

/// Parses JSON of an untrusted checkpoint.
///
/// Errors    CheckpointError with `path`: invalid JSON, more than 64 levels (recursive functions walk it) or 32,768
///           members (they are searched one after the other).
nlohmann::ordered_json parse_checkpoint_json(std::string_view text, const std::filesystem::path& path);

/// Reads the members of a JSON object. Both arguments must outlive it.
///
/// Errors    CheckpointError with `path`, the member's name and value, if it is missing or of another type or range.
class JsonMembers {
 public:
  using Json = nlohmann::ordered_json;

  JsonMembers(const Json& json, const std::filesystem::path& path) : json_(json), path_(path) {}

  const Json& object(const char* name) const;
  std::string text(const char* name) const;
  /// An object whose values are all text.
  std::map<std::string, std::string> texts(const char* name) const;
  bool is_null(const char* name) const { return at(name).is_null(); }

  /// A number from `least` to `most`. Integers are not negative.
  template <class Number>
  Number number(const char* name, Number least, Number most) const {
    const Json& value = at(name);
    const bool is_number = std::is_integral_v<Number> ? value.is_number_integer() : value.is_number();
    if (!is_number || !(value >= least) || !(value <= most))
      refuse(name, "a number from " + Json(least).dump() + " to " + Json(most).dump());
    return value.get<Number>();
  }

 private:
  const Json& at(const char* name) const;
  [[noreturn]] void refuse(const char* name, const std::string& expected) const;

  const Json& json_;
  const std::filesystem::path& path_;
};

}  // namespace gradring::train
