// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace gradring::train {

/// Owns a JSON value, for headers that carry one: unlike nlohmann/json itself, it costs those who include it nothing to
/// compile. Copies are deep. A moved-from object may only be assigned to or destroyed.
class JsonValue {
 public:
  JsonValue();                              ///< an empty object
  JsonValue(nlohmann::ordered_json value);  // NOLINT(google-explicit-constructor)
  JsonValue(const JsonValue& other);
  JsonValue(JsonValue&& other) noexcept;
  JsonValue& operator=(JsonValue other) noexcept;
  ~JsonValue();

  /// Errors    std::exception if it is not valid JSON.
  static JsonValue parse(std::string_view text);
  std::string text() const;

  nlohmann::ordered_json& operator*() { return *value_; }
  const nlohmann::ordered_json& operator*() const { return *value_; }
  nlohmann::ordered_json* operator->() { return value_.get(); }
  const nlohmann::ordered_json* operator->() const { return value_.get(); }

  bool operator==(const JsonValue& other) const;

 private:
  std::unique_ptr<nlohmann::ordered_json> value_;
};

}  // namespace gradring::train
