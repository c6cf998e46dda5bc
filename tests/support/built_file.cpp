// SPDX-License-Identifier: Apache-2.0
#include "tests/support/built_file.h"

namespace gradring::tests {

std::filesystem::path built_file(const std::filesystem::path& relative) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / relative).lexically_normal();
}

}  // namespace gradring::tests
