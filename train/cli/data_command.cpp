// SPDX-License-Identifier: Apache-2.0
#include "train/cli/data_command.h"

#include <fmt/format.h>

#include <cstdio>

#include "train/cli/data_fetch.h"
#include "train/cli/data_info.h"
#include "train/cli/data_verify.h"
#include "train/cli/exit_code.h"
#include "train/cli/subcommands.h"

namespace gradring::train {
namespace {

constexpr Subcommand kActions[] = {
    {"fetch", "get a data set; goes on where a transfer broke off, and checks what came", data_fetch},
    {"verify", "compare a data set's files with what they should be, to the last bit", data_verify},
    {"info", "what there is to fetch, or what a data set holds", data_info},
};

constexpr CommandGroup kData{.command = "gradring data",
                             .purpose = "data sets to train on",
                             .kind = "action",
                             .usage = "ACTION [NAME] [OPTIONS]",
                             .subcommands = kActions};

}  // namespace

int data_main(std::span<const std::string> args) {
  try {
    return run_subcommand(kData, args);
  } catch (const std::exception& error) {
    std::fflush(stdout);  // what went well stands above what did not
    fmt::print(stderr, "gradring data: {}\n", message_of(error));
    return exit_code_of(error);
  }
}

}  // namespace gradring::train
