// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/simulated_gpu/ptx/fat_binary.h"

namespace gradring::ptx::tests {

/// A fat binary of a shared library: of one source.
struct BuiltBinary {
  struct Code {
    int compute_capability = 0;
    std::string elf;
  };
  std::vector<EmbeddedPtx> texts;
  std::vector<Code> code;
};

/// All of a shared library, which is read as a file and not loaded.
std::vector<BuiltBinary> binaries_in(const std::filesystem::path& library);

/// Their PTX texts.
std::vector<std::string> ptx_in(const std::filesystem::path& library);

}  // namespace gradring::ptx::tests
