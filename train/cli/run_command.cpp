// SPDX-License-Identifier: Apache-2.0
#include "train/cli/run_command.h"

#include <fmt/format.h>

#include <cstdio>

#include "kernels/runtime/write_all.h"
#include "train/cli/exit_code.h"
#include "train/cli/standard_output.h"

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
