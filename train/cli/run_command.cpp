// SPDX-License-Identifier: Apache-2.0
#include "train/cli/run_command.h"

#include <fmt/format.h>

#include <cstdio>

#include "train/checkpoint/error.h"
#include "train/cli/exit_code.h"

namespace gradring::train {

int run_command(std::string_view name, const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    std::fflush(stdout);  // what went well stands above what did not
    fmt::print(stderr, "{}: {}\n", name, message_of(error));
    return dynamic_cast<const FileError*>(&error) ? kEnvironment : exit_code_of(error);
  }
}

}  // namespace gradring::train
