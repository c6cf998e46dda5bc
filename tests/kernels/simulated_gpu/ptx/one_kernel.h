// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gradring::ptx::tests {

/// A module with the kernel k, which has the parameters `pointer` (offset 0) and `count` (offset 8). Its body begins in
/// line 6.
inline std::string one_kernel(const std::string& body, const std::string& before = "") {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n" + before +
         "\n.visible .entry k(.param .u64 pointer, .param .u32 count)\n{" + body + "}\n";
}

}  // namespace gradring::ptx::tests
