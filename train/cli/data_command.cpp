// SPDX-License-Identifier: Apache-2.0
#include "train/cli/data_command.h"

#include "train/cli/data_fetch.h"
#include "train/cli/data_info.h"
#include "train/cli/data_verify.h"
#include "train/cli/run_command.h"
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
  return run_command("gradring data", [args] { return run_subcommand(kData, args); });
}

}  // namespace gradring::train
