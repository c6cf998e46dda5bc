// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/csv.h"

namespace gradring::train {
namespace {

std::string quoted_if_needed(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char c : field) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

std::string csv_line(std::span<const std::string> fields, std::string_view line_end) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) line += (i > 0 ? "," : "") + quoted_if_needed(fields[i]);
  return line.append(line_end);
}

}  // namespace gradring::train
