// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace gradring::tests {

/// All of a file; empty if there is none.
inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Its lines, without their ends.
inline std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// The lines of a metrics.jsonl that record steps and evaluations.
inline std::vector<std::string> records_of(const std::filesystem::path& metrics) {
  std::vector<std::string> records = lines_of(metrics);
  std::erase_if(records, [](const std::string& line) {
    return !line.starts_with(R"({"event":"train")") && !line.starts_with(R"({"event":"eval")");
  });
  return records;
}

}  // namespace gradring::tests
