// SPDX-License-Identifier: Apache-2.0
#include "tests/support/temp_folder.h"

#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace gradring::tests {

TempFolder::TempFolder(const std::filesystem::path& parent) {
  std::string pattern = (parent / "gradring-test-XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw std::runtime_error("no temporary folder " + pattern);
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code left_behind;
  std::filesystem::remove_all(path_, left_behind);
}

std::filesystem::path TempFolder::write(const std::filesystem::path& name, std::span<const std::uint8_t> bytes) const {
  std::filesystem::create_directories((path_ / name).parent_path());
  std::ofstream file(path_ / name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path_ / name;
}

}  // namespace gradring::tests
