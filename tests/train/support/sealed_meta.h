// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "train/records/checkpoint/checkpoint.h"
#include "train/records/checkpoint/file_system.h"

namespace gradring::tests {

/// JSON, or what claims to be some, as meta.json ends: with the SHA-256 of all before it, so that its reader looks at
/// the rest.
inline std::string sealed(std::string json) {
  if (const auto end = json.find_last_of('}'); end != json.npos) json.resize(end);
  json += ",\n  \"sha256\": \"";
  return json + train::sha256_hex(train::bytes_of(json)) + "\"\n}\n";
}

/// The text of a meta.json after a change that somebody made who knows the checksum.
inline std::string forged(const std::string& meta, const std::function<void(nlohmann::ordered_json&)>& change) {
  auto json = nlohmann::ordered_json::parse(meta);
  json.erase("sha256");
  change(json);
  return sealed(json.dump());
}

}  // namespace gradring::tests
