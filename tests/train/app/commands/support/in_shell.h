// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/run_program.h"

namespace gradring::tests {

/// A shell script in which "$@" is the program.
inline ProgramSpec in_shell(ProgramSpec spec, const std::string& script) {
  std::vector<std::string> command = {"/bin/sh", "-c", script, "sh"};
  command.insert(command.end(), spec.command.begin(), spec.command.end());
  spec.command = std::move(command);
  return spec;
}

}  // namespace gradring::tests
