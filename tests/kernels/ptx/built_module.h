// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace gradring::ptx::tests {

/// The PTX texts in all fat binaries of a shared library, which is read as a file and not loaded.
std::vector<std::string> ptx_in(const std::filesystem::path& library);

}  // namespace gradring::ptx::tests
