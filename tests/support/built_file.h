// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace gradring::tests {

/// A file of this build by its path relative to the folder of the running program, so that a build folder can be moved.
std::filesystem::path built_file(const std::filesystem::path& relative);

}  // namespace gradring::tests
