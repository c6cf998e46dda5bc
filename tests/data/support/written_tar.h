// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace gradring::tests {

struct TarMember {
  std::string name;
  Bytes content = {};
  char type = '0';
  std::string prefix = {};
};

/// A ustar archive with these members, and its two blocks of zeros.
Bytes tar_bytes(const std::vector<TarMember>& members);

}  // namespace gradring::tests
