// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

namespace gradring::simt {

/// The place in a kernel's text where a call stands. Taken as a defaulted argument, so that it names the caller.
/// (std::source_location says the same, but clang has it only from version 16 on, and it is twice as large.)
struct Site {
  const char* file = "";
  int line = 0;

  static constexpr Site current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  bool operator==(const Site& other) const {
    return line == other.line && (file == other.file || std::strcmp(file, other.file) == 0);
  }
};

}  // namespace gradring::simt
