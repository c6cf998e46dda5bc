// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace gradring::data {

/// What is often found in the place of a data or weights file.
struct MistakenFile {
  std::string_view start;   ///< its first bytes, letters in lower case
  std::string_view what;    ///< "is a Git LFS pointer to a file"
  std::string_view advice;  ///< "fetch the file itself: git lfs pull"
};

/// Bytes by which such files can be told.
inline constexpr std::size_t kStartBytes = 32;

/// What a file is that begins with `start`, whose format has been ruled out.
std::optional<MistakenFile> find_mistaken_file(std::string_view start);

}  // namespace gradring::data
