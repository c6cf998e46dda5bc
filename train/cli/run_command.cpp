// SPDX-License-Identifier: Apache-2.0
#include "train/cli/run_command.h"

#include <fmt/format.h>

#include <cstdio>

#include "train/cli/exit_code.h"
#include "train/cli/standard_output.h"
#include "train/report/console.h"

namespace gradring::train {

int run_command(std::string_view name, const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    if (is_output_failure(error)) throw;
    const int code = finish_standard_output(exit_code_of(error));  // what went well stands above what did not
    print_to_stderr(fmt::format("{}: {}\n", name, message_of(error)));
    return code;
  }
}

}  // namespace gradring::train
