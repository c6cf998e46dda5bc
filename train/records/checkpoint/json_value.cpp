// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/json_value.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace gradring::train {

JsonValue::JsonValue() : JsonValue(nlohmann::ordered_json::object()) {}
JsonValue::JsonValue(nlohmann::ordered_json value)
    : value_(std::make_unique<nlohmann::ordered_json>(std::move(value))) {}
JsonValue::JsonValue(const JsonValue& other) : JsonValue(*other) {}
JsonValue::JsonValue(JsonValue&& other) noexcept = default;
JsonValue& JsonValue::operator=(JsonValue other) noexcept {
  value_.swap(other.value_);
  return *this;
}
JsonValue::~JsonValue() = default;

JsonValue JsonValue::parse(std::string_view text) { return nlohmann::ordered_json::parse(text); }
std::string JsonValue::text() const { return value_->dump(); }
bool JsonValue::operator==(const JsonValue& other) const { return *value_ == *other.value_; }

}  // namespace gradring::train
