// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "kernels/runtime/unique_fd.h"

namespace gradring {

/// Whether `path` still names the open file or folder: another process may have removed or replaced it.
bool is_at(const std::filesystem::path& path, const UniqueFd& file);

}  // namespace gradring
