// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace gradring::tests {

/// Exit code of a script that lacks a Python package, which it names on stdout: the test is skipped.
inline constexpr int kPackageMissing = 77;

/// The Python in which tests look for packages of PyPI (tensorboard, onnx, ...): GRADRING_TEST_PYTHON, which
/// need_python_packages of scripts/lib.sh sets; else the python3 of PATH.
inline std::vector<std::string> test_python() {
  const char* const named = std::getenv("GRADRING_TEST_PYTHON");
  return named && *named ? std::vector<std::string>{named} : std::vector<std::string>{"/usr/bin/env", "python3"};
}

/// That Python with its arguments, the first of which is a script, to be run in `folder`.
inline ProgramSpec python_script(const std::vector<std::string>& words, const std::filesystem::path& folder) {
  ProgramSpec spec{.command = test_python(), .folder = folder, .variables = {{"PYTHONDONTWRITEBYTECODE", "1"}}};
  spec.command.insert(spec.command.end(), words.begin(), words.end());
  return spec;
}

}  // namespace gradring::tests
