// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/findings/suppressions.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "kernels/base/error.h"

namespace gradring::simulated_gpu {

Suppression::Suppression(const std::string& line) {
  std::istringstream fields(line);
  for (std::string field; fields >> field && field.front() != '#';) {
    const std::size_t equals = std::min(field.find('='), field.size());
    const std::string value = equals < field.size() ? field.substr(equals + 1) : "";
    if (!set(std::string_view(field).substr(0, equals), value))
      throw InvalidArgument("suppression '" + line + "': '" + field +
                            "' is not valid, expected kind=NAME, kernel=REGEX, file=PATH or line=NUMBER");
  }
}

bool Suppression::set(std::string_view name, const std::string& value) {
  if (name == "kind") return (kind_ = finding_kind(value)).has_value();
  if (name == "file") return !(file_ = value).empty();
  if (name == "line")
    return std::from_chars(value.data(), value.data() + value.size(), line_).ptr == value.data() + value.size() &&
           line_ > 0;
  if (name != "kernel") return false;
  try {
    kernel_.emplace(value);
  } catch (const std::regex_error&) {
    return false;
  }
  return true;
}

bool Suppression::matches(FindingKind kind, const std::string& kernel, std::string_view file, unsigned line) const {
  return (!kind_ || kind_ == kind) && (!kernel_ || std::regex_match(kernel, *kernel_)) && file.ends_with(file_) &&
         (line_ == 0 || line_ == line);
}

std::vector<Suppression> suppressions_from(const std::string& text) {
  std::vector<Suppression> suppressions;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin != line.npos && line[begin] != '#') suppressions.emplace_back(line.substr(begin));
  }
  return suppressions;
}

}  // namespace gradring::simulated_gpu
